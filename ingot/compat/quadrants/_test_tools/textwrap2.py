"""Text of programs."""


def dedent(width, text):
    """The text without the first `width` characters of every line."""
    return "\n".join(line[width:] for line in text.split("\n"))
