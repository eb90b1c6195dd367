package explore

import "os"

// Scope is a part of what may happen, with bounds for every build and wider
// ones for a long run.
type Scope struct {
	Name        string
	Short, Long Bounds
}

// Scopes returns the scopes that the protocol is explored in. Each mixes other
// faults, because all of them together have too many states.
func Scopes() []Scope {
	event, orders := []Kind{{Event: "e1"}}, []Kind{{"e1", "1"}, {"e2", "2"}}
	base := Bounds{Clients: 2, Names: 1, Turns: 1, Kinds: event, Ticks: 2, Lease: 1, Remember: 20}
	with := func(change func(*Bounds)) Bounds {
		b := base
		change(&b)
		return b
	}
	scope := func(name string, short, long func(*Bounds)) Scope {
		b := with(short)
		s := Scope{Name: name, Short: b}
		long(&b)
		s.Long = b
		return s
	}
	return []Scope{
		scope("two names and lost answers",
			func(b *Bounds) { b.Clients, b.Names, b.Unanswered = 3, 2, 1 },
			func(b *Bounds) { b.Rounds, b.Slow, b.Copies = 1, 1, 1 }),
		scope("lost answers",
			func(b *Bounds) { b.Rounds, b.Unanswered, b.Rejected = 1, 2, 1 },
			func(b *Bounds) { b.Clients, b.Rejected = 3, 0 }),
		scope("retries of a crashed invocation",
			func(b *Bounds) { b.Turns, b.Copies, b.Crashes = 2, 1, 1 },
			func(b *Bounds) { b.Rounds, b.Unanswered = 1, 1 }),
		scope("orders and mutexes",
			func(b *Bounds) { b.Turns, b.Kinds, b.Copies = 2, orders, 1 },
			func(b *Bounds) { b.Kinds, b.Unanswered = append(orders, Kind{}), 1 }),
		// A lease is held to the end of its last tick, so a Grace of one just suffices
		// for clocks that differ by two ticks.
		scope("clocks that differ by Grace",
			func(b *Bounds) {
				b.Lease, b.Grace, b.Ticks, b.Skew, b.Unanswered = 2, 1, 5, [maxClients]int{0, 2}, 1
			},
			func(b *Bounds) { b.Rounds, b.Slow, b.Unanswered = 1, 1, 2 }),
		scope("heartbeats",
			func(b *Bounds) { b.Lease, b.Ticks, b.Heartbeat, b.Unanswered = 2, 4, true, 1 },
			func(b *Bounds) { b.Lease, b.Ticks, b.Rounds, b.Copies = 3, 5, 1, 1 }),
		scope("freezes",
			func(b *Bounds) { b.Ticks, b.Rounds, b.Unanswered, b.Freezes = 3, 1, 1, 1 },
			func(b *Bounds) { b.Turns = 2 }),
		scope("events that are forgotten",
			func(b *Bounds) { b.Turns, b.Ticks, b.Remember, b.Slow = 2, 3, 1, 1 },
			func(b *Bounds) { b.Unanswered, b.Slow, b.Kinds = 1, 0, orders }),
		scope("the server's clock",
			func(b *Bounds) {
				b.Ticks, b.Skew, b.ServerClock, b.Rounds, b.Unanswered, b.Copies = 3, [maxClients]int{0, 9}, true, 1, 1, 1
			},
			func(b *Bounds) { b.Lease, b.Ticks, b.Unanswered = 2, 5, 2 }),
		scope("heartbeats on the server's clock",
			func(b *Bounds) {
				b.Lease, b.Ticks, b.Skew, b.ServerClock, b.Heartbeat, b.Unanswered = 2, 3, [maxClients]int{0, 9}, true, true, 1
			},
			func(b *Bounds) { b.Ticks, b.Rounds, b.Copies = 5, 1, 1 }),
	}
}

// Long reports whether LAMBDALOCK_DEPTH=long asks for the long form of a test.
func Long() bool { return os.Getenv("LAMBDALOCK_DEPTH") == "long" }
