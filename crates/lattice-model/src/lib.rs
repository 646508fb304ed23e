//! Pure model of stacks: names, ids, graph, snapshot, gate, plans and doctor. No I/O.
