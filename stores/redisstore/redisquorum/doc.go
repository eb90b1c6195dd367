// Package redisquorum keeps locks on an odd number of independent Redis or
// Valkey servers, of which a majority must answer (the algorithm known as
// Redlock). Rows, client settings and permissions are those of package
// redisstore. It is experimental:
// https://github.com/lambdalock/lambdalock/blob/main/SUPPORT.md#what-is-experimental
//
// # What it does not promise
//
// It does not promise that at most one owner exists, whatever happens:
//   - A server that loses writes can lose locks and completed events with them.
//     The fence still rises. What is lost in each case:
//     https://github.com/lambdalock/lambdalock/blob/main/docs/STORES.md#what-redis-may-lose.
//     So let the servers write each change to disk (appendfsync always), or let
//     a server that has crashed stay down for longer than the longest lease.
//     What it has lost it learns again with the next completion of the name.
//   - The clocks of the servers and of the function must run at the same rate,
//     about. A server whose clock is set forward ends leases early.
//   - A function that was paused can write after its lease has ended. Only the
//     fencing token stops such a write; it rises with every owner, across any
//     two majorities.
//   - A claim that was given up while requests got lost may keep a name until
//     its lease ends, if another server is down or busy.
//   - What is forgotten on purpose (lambdalock forget) comes back from a server
//     that was down then, because one server that remembers is enough.
//
// # What it promises
//
// Locks, completed events and fences outlive the loss of a minority of the
// servers, without a failover: three servers go on when one is down, five when
// two are.
//
// # How it differs from Redlock
//
// Redlock has no fence, and does not restore what a restarted server has lost.
// Here each server keeps the whole row.
//   - The fence rises across majorities. Each server gives the fence that its
//     own clock says, or one more than the last. The claim's fence is the
//     highest that a majority reaches, so servers whose clocks differ need no
//     further request. If one of them knew a higher fence before, that one and
//     one more is written to a majority before the claim counts: the next
//     majority shares a server with it. A renewal does the same.
//   - The newest memory decides. Each server keeps the stamp of the claim that
//     completed last. A server that was down, or lost its last writes, adds
//     what only it knows behind the event that precedes it there, and its
//     result counts only if no newer memory has one. But one server that
//     remembers is enough to know an event as completed.
//   - A late owner completes nothing. A server records a completion only while
//     its lease lasts, because the next owner may have a majority without it.
//   - A server that missed a release is cleared by the next claim, release or
//     renewal, once a majority refuses the old claim for good. The release may
//     only be late, so clearing applies the rest of it: the server learns what
//     the others remember, and the owner that it has lost nothing.
//   - A server that lost the row gets it again with the next renewal, as a
//     claim with the row's stamp. A copy of that claim which arrives after the
//     release is refused like any late copy.
//   - A server that missed the claim, and has no holder, takes the end of a
//     lock as well, with its cooldown and what was completed, once a server
//     with the lock has applied it. So one server may be away at any moment.
//
// # When to use something else
//
// Use it where there are several Redis servers and nothing else. In one Region,
// a DynamoDB table or MemoryDB with package redisstore promise more and are
// less to operate. For rare work, objects in a bucket are enough. One server
// with a replica needs a third of the requests, if you can accept that a
// failover loses the last writes. All of them side by side:
// https://github.com/lambdalock/lambdalock/blob/main/docs/STORES.md.
//
// # Servers
//
// Two clients of one server are refused with a *driver.ConfigError, at the
// first request, if the server may tell its run_id. The servers must not
// replicate each other either: a replica that takes over counts as a server
// that has lost its latest writes.
//
// # Time
//
// Each step is sent to all servers at the same time, and each has 250 ms to
// answer. So a server that does not answer makes each step take that long.
// Opening the connection of a *redis.Client does not count: that goes on in the
// background for up to a second, and is waited for only while no majority is
// connected.
package redisquorum
