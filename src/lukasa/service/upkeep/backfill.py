"""Compute missing vectors: of entries written without the embedder, or before the present model.

The model is called between transactions, never inside one, for a few texts at a time; after an interruption the next
run goes on from there. A vector is stored only for the text that it was computed from, so an edit in between wins.
"""

from __future__ import annotations

from collections.abc import Mapping

from lukasa.model.values import State
from lukasa.ports import Embedder
from lukasa.service.call import CallContext
from lukasa.service.entries.revise import pairs
from lukasa.storage.operations import Embedding, ItemVector, SaveEmbedding, SaveItemVectors, SavePassageEmbedding
from lukasa.storage.port import Store

BATCH = 32


def backfill(ctx: CallContext, limit: int) -> int:
    """Embed up to so many entries, items and passages of documents; return how many. Without an embedder do nothing."""
    if ctx.embedder is None:
        return 0
    done = 0
    for store in (ctx.local, ctx.account):
        done += entries(ctx, store, ctx.embedder, limit - done)
        done += _beside(ctx, store, limit - done)
    done += items(ctx, ctx.embedder, limit - done)
    return done + passages(ctx, ctx.embedder, limit - done)


def entries(ctx: CallContext, store: Store, embedder: Embedder, limit: int) -> int:
    """Embed up to so many entries of a store."""
    done = 0
    while batch := store.unembedded(embedder.model, min(BATCH, limit - done)) if done < limit else []:
        vectors = embedder.embed_memories([each.content for each in batch])
        kept = {e.id: Embedding(embedder.model, vector) for e, vector in zip(batch, vectors, strict=True)}
        ctx.apply(store, *(SaveEmbedding(e.id, e.version, kept[e.id]) for e in batch))
        _compare(ctx, store, kept)
        done += len(batch)
    return done


def _beside(ctx: CallContext, store: Store, limit: int) -> int:
    """Embed up to so many entries of a store with the second embedder."""
    if ctx.second is None:
        return 0
    done, model = 0, ctx.second.model
    while batch := store.unembedded(model, min(BATCH, limit - done)) if done < limit else []:
        vectors = ctx.second.embed_memories([each.content for each in batch])
        made = [Embedding(model, vector) for vector in vectors]
        ctx.apply(store, *(SaveEmbedding(e.id, e.version, one) for e, one in zip(batch, made, strict=True)))
        done += len(batch)
    return done


def _compare(ctx: CallContext, store: Store, embedded: Mapping[str, Embedding]) -> None:
    """Note which of these entries concern the same thing as others: without a vector, words alone told that."""
    for entry in store.entries(embedded).values():
        if entry.state is State.ACTIVE and (found := pairs(ctx, store, entry, embedded[entry.id])):
            ctx.apply(store, *found)


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


def passages(ctx: CallContext, embedder: Embedder, limit: int) -> int:
    """Embed up to so many passages of documents."""
    done, model = 0, embedder.model
    while batch := ctx.local.unembedded_passages(model, min(BATCH, limit - done)) if done < limit else []:
        vectors = embedder.embed_memories([one.text for one in batch])
        made = (Embedding(model, vector) for vector in vectors)
        operations = [
            SavePassageEmbedding(one.document, one.version, one.number, vector)
            for one, vector in zip(batch, made, strict=True)
        ]
        ctx.apply(ctx.local, *operations)
        done += len(batch)
    return done
