"""Hooks of the documentation site: pages from the repository's root, links to files that are no pages, examples.

The documents are written to be read in the repository. On the site README, CHANGELOG and CONTRIBUTING are pages too; a
link to a source file becomes its text.
"""

import posixpath
import re
from pathlib import Path

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT_PAGES = {"README.md": "start.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages of the site by their path in the repository."""

LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s#]*)(#[^()\s]*)?\)")
"""Text, path and fragment of an inline link."""


EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
"""A doctest in a docstring, up to the next empty line."""


class FenceExamples(griffe.Extension):
    """Has a docstring's examples shown as code: between sections they would be read as Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Fence the examples of an object."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(lambda code: f"```pycon\n{code.group(0)}\n```", obj.docstring.value)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the repository's root."""
    for path, page in ROOT_PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(_root(config) / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Have every relative link lead to a page of the site, or be text."""
    pages = {page: path for path, page in ROOT_PAGES.items()}
    path = pages.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def resolve(link: re.Match[str]) -> str:
        text, target, fragment = link.group(1), link.group(2), link.group(3) or ""
        if not target or "://" in target or target.startswith(("mailto:", "/")):
            return link.group(0)
        linked = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if not (_root(config) / linked).exists():
            # A dead link: the site's own check names it.
            return link.group(0)
        on_site = ROOT_PAGES.get(linked) or linked.removeprefix("docs/")
        if on_site == linked or files.get_file_from_path(on_site) is None:
            on_site = posixpath.join(on_site, "README.md")
            if files.get_file_from_path(on_site) is None:
                return text
        return f"[{text}]({posixpath.relpath(on_site, posixpath.dirname(page.file.src_uri) or '.')}{fragment})"

    return LINK.sub(resolve, markdown)


def _root(config: MkDocsConfig) -> Path:
    return Path(config.config_file_path).parent
