"""The errors datassay raises on purpose."""


class InputError(ValueError):
    """Something the caller gave is not usable; the message names it and says what would be right."""


class MissingDependencyError(ImportError):
    """An optional package is needed; the message says how to install it."""
