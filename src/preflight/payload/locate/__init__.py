"""Which host or link makes a group slow: what to measure next, from what was measured so far.

`locate` and `pairwise` are generators: each gives a round of tests that share no host, is sent what
they measured, and returns what was found. They measure nothing themselves, so a cluster of 10,000
hosts can be played through in a moment, see bench/localisation.py. How `locate` searches:

1. All hosts in ring order in groups of about their square root, then the same shifted by half a
   group. A fast group proves its hosts, and the links between neighbours of its ring.
2. What is in no fast group is halved; each half is filled up with proven hosts beside it: those
   before it for the first half, those behind it for the second. All such halves are one round.
3. A host is to blame when it is slow with two proven hosts, one from before it, one from behind.
4. Proven hosts that no chain of fast tests joins are measured in mixed groups. Where these are slow
   again and again there is a boundary between the sides: a switch, a trunk.
5. Links that were in no fast group are measured alone, between their two proven hosts; slow twice,
   they are to blame.

Who is fast with nobody proven is to blame. So where a boundary cuts off only a few nodes, one of
which is slow by itself, and none of them is proven, all of these are.

What is fast is told by the tests themselves (scale.py), what they prove together stands in
proof.py, and which tests come next in choose.py.
"""
