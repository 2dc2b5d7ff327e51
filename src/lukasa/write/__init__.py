"""The write path: pure steps from a proposal to the operations that store it.

    CHECK:   sanitise → guard → gate → categorise → admit → policy     checks that need only the proposal and the spec
    RESOLVE: dedup → resolve                                   decisions that need the neighbours
    plan:    the operations and their events                   applied by the store

Each step adds its verdict, with a reason, to the draft's ledger.
"""
