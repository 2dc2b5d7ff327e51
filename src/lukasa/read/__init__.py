"""The read path: pure functions after the fetch.

    signals → fuse → rank (importance, decay) → dedup → profile → hits | context

Nothing here calls the store; the service fetches and passes values, `now` included.
"""
