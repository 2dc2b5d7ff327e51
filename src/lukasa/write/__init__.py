"""The write path: pure steps from a proposal to the operations that store it.

    screen: sanitise → guard → gate → categorise → policy      needs nothing but the proposal and the spec
    settle: dedup → resolve                                    is given the neighbours
    plan:   the operations and their events                    what the store will apply

Each step adds its verdict, with a reason, to the draft's ledger.
"""
