"""Compute missing vectors: of entries written without the embedder, or before the present model.

The model is called between transactions, never inside one, for a few texts at a time; after an interruption the next
run goes on from there. A vector is stored only for the text that it was computed from, so an edit in between wins.
"""

from __future__ import annotations

from lukasa.ports import Embedder
from lukasa.service.call import CallContext
from lukasa.storage.operations import Embedding, ItemVector, SaveEmbedding, SaveItemVectors
from lukasa.storage.port import Store

BATCH = 32


def backfill(ctx: CallContext, limit: int) -> int:
    """Embed up to so many entries and items; return how many. Without an embedder do nothing."""
    if ctx.embedder is None:
        return 0
    done = 0
    for store in (ctx.local, ctx.account):
        done += entries(ctx, store, ctx.embedder, limit - done)
    return done + items(ctx, ctx.embedder, limit - done)


def entries(ctx: CallContext, store: Store, embedder: Embedder, limit: int) -> int:
    """Embed up to so many entries of a store."""
    done = 0
    while batch := store.unembedded(embedder.model, min(BATCH, limit - done)) if done < limit else []:
        vectors = embedder.embed_memories([each.content for each in batch])
        kept = (Embedding(embedder.model, vector) for vector in vectors)
        ctx.apply(store, *(SaveEmbedding(e.id, e.version, v) for e, v in zip(batch, kept, strict=True)))
        done += len(batch)
    return done


def items(ctx: CallContext, embedder: Embedder, limit: int, *, indexer: str = "") -> int:
    """Embed up to so many items that this embedder finds: those of an index, or of the workspace."""
    done, model = 0, embedder.model
    while batch := ctx.local.unembedded_items(model, indexer, min(BATCH, limit - done)) if done < limit else []:
        texts = list(dict.fromkeys(text for each in batch for _, text in each.texts))
        known = dict(zip(texts, embedder.embed_memories(texts), strict=True))
        operations = []
        for each in batch:
            vectors = tuple(ItemVector(field, model, known[text]) for field, text in each.texts)
            operations.append(SaveItemVectors(each.place, each.value, each.index, vectors))
        ctx.apply(ctx.local, *operations)
        done += len(batch)
    return done
