"""CUDA source as package data: ``rule.h`` (owner of a key) and ``bucketize.cu`` (multisplit)."""
