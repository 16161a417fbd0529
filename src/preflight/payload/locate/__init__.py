"""Which host or link makes a group slow: what to measure next, from what was measured so far.

`locate` and `pairwise` are generators: each gives a round of tests that share no host, is sent what
they measured, and returns what was found. They measure nothing themselves, so a cluster of 10,000
hosts can be played through in a moment, see bench/localisation.py. How `locate` searches:

1. All hosts in ring order in groups of about their square root, then the same shifted by half a
   group. A fast group proves its hosts, and the links between neighbours of its ring.
   Then pairs, some nearby and some far apart: what lies between hosts may slow all groups alike.
2. What is in no fast group is halved; each half is filled up with proven hosts beside it: those
   before it for the first half, those behind it for the second. All such halves are one round.
3. A host is to blame when it is slow with two proven hosts, one from before it, one from behind,
   and with the others that are to blame: hosts behind one slow switch are fast together.
4. Proven hosts that no chain of fast tests joins are measured in mixed groups, from several places
   of both sides. Where all of these are slow there is a boundary: a switch, a trunk.
5. Links that were in no fast group are measured alone, between their two proven hosts, in turn with
   these hosts without the link. Slow each time, while its ends are fast each time, it is to blame.

Where tests contradict each other, and where slow ones remain that nothing explains, nobody is
blamed: "not determined".

What is fast is told by the tests themselves (scale.py), what they prove together stands in
proof.py, which tests come next in choose.py, and which hold a culprit
against other explanations in audit.py.
"""
