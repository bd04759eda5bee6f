"""Facts about the platform."""


def get_os_name():
    """'linux', 'osx' or 'win'."""
    import platform

    return {"Darwin": "osx", "Windows": "win"}.get(platform.system(), "linux")


def import_qd_python_core():
    """The module that stands for the native part."""
    from ingot.compat.quadrants._lib import core

    return core
