"""Prices: bytes, lookup and exchange time, access statistics, hardware profiles.

Pure functions of plain values, vectorised over options; nothing measured lives outside a profile.
"""
