"""Report: what a person sees; the figures, the HTML page, and the words that explain each method."""
