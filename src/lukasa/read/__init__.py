"""The read path: pure after the fetch.

    signals → fuse → rank (importance, decay) → dedup → profile → hits | context

Nothing here asks the store; the service fetches and hands over values, `now` included.
"""
