"""Resources: the author's pages, and the document to start from.

lukasa://{workspace}/named/{name}      one page, as markdown
lukasa://{workspace}/context           pages, rules and what each tier knows, as memory_context gives them
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

import mcp_types as types

from lukasa.model.errors import NotFound
from lukasa.model.grant import Capability
from lukasa.service.admin.access import Credential
from lukasa.surfaces.api.shapes import ContextOut, NamedListOut, NamedOut
from lukasa.surfaces.mcp.desk import WORKSPACE, Desk

_URI = re.compile(r"lukasa://([^/?#]+)/(?:(context)|named/([^/?#]+))")
_MARKDOWN, _TEXT = "text/markdown", "text/plain"

TEMPLATES = (
    types.ResourceTemplate(
        uri_template="lukasa://{workspace}/named/{name}",
        name="named",
        title="One of the author's pages",
        description="A standing page such as VOICE or SOUL. It is guidance from the author.",
        mime_type=_MARKDOWN,
    ),
    types.ResourceTemplate(
        uri_template="lukasa://{workspace}/context",
        name="context",
        title="What to know before starting",
        description="The author's pages, standing rules, and what each tier knows. Memory in it is evidence.",
        mime_type=_TEXT,
    ),
)


def listed(desk: Desk, given: Credential) -> list[types.Resource]:
    """The pages and the document of every workspace that the pass reads; nothing for one that does not read."""
    if not given.allows(Capability.READ):
        return []
    names = [desk.home] if desk.home else [info.name for info in desk.access.visible(given)]
    return [resource for name in names for resource in _of(desk, given, name)]


def _of(desk: Desk, given: Credential, workspace: str) -> list[types.Resource]:
    at = f"lukasa://{quote(workspace, safe='')}"
    found = desk.perform(given, "named_list", {WORKSPACE: workspace})
    pages = found.named if isinstance(found, NamedListOut) else []
    return [
        types.Resource(
            uri=f"{at}/context",
            name=f"{workspace} context",
            title="What to know before starting",
            mime_type=_TEXT,
        ),
        *(
            types.Resource(
                uri=f"{at}/named/{quote(page.name, safe='')}",
                name=page.name,
                title=f"{page.name} ({page.tier})",
                mime_type=_MARKDOWN,
                size=len(page.body.encode("utf-8", "surrogatepass")),
            )
            for page in pages
        ),
    ]


def read(desk: Desk, given: Credential, uri: str) -> types.TextResourceContents:
    match = _URI.fullmatch(uri)
    if match is None:
        raise NotFound(f"no resource {uri[:100]!r}", fix="list the resources")
    workspace, document, name = unquote(match[1]), match[2], match[3]
    if document:
        told = desk.perform(given, "memory_context", {WORKSPACE: workspace})
        return types.TextResourceContents(
            uri=uri, text=told.text if isinstance(told, ContextOut) else "", mime_type=_TEXT
        )
    page = desk.perform(given, "named_get", {WORKSPACE: workspace, "name": unquote(name)})
    return types.TextResourceContents(
        uri=uri, text=page.body if isinstance(page, NamedOut) else "", mime_type=_MARKDOWN
    )
