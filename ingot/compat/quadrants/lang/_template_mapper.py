"""Exists because programs import it; arguments are mapped by Ingot's own launch plans."""
