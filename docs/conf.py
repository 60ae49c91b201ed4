"""Configuration of the documentation site; `scripts/build_site.py` builds it from a copy of this folder."""

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

project = "jitcore"
author = "the authors of jitcore"
extensions = ["myst_nb", "sphinx_design"]
exclude_patterns = ["examples", "_build"]

html_theme = "furo"
html_title = "jitcore"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "monokai"

# Links to headings as code hosts make them, so that pages read there and here.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
myst_dmath_double_inline = False
suppress_warnings = ["myst.header"]

# Cells run here, once; the examples with printed text beside them are run by tests/test_docs_examples.py.
nb_execution_mode = "force"
nb_execution_timeout = 240
nb_execution_raise_on_error = True
nb_merge_streams = True

# Programs in forms that Pygments has no lexer for.
lexers["mermaid"] = TextLexer()
