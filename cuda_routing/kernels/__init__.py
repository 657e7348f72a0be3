"""CUDA source as package data: ``rule.h`` (who owns a key), ``bucketize.cu`` (the multisplit)."""
