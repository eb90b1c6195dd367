package main

// rows has the bugs in the rules of rows, and how a row is stored.
var rows = []mutant{
	{
		file: "lock/driver/row.go", breaks: "P4", bug: "a place is given in the line for a free name",
		old: `if r.Newer || r.Token == "" {
		return false
	}
	r.Line++`,
		new: `if r.Newer {
		return false
	}
	r.Line++`,
		by: "TestConformance", in: "stores/memstore",
	},
	{
		file: "lock/driver/row.go", breaks: "P5", bug: "a completed event runs again",
		old: `case c.Event != "" && r.Memory.Has(c.Event, c.Now):`,
		new: `case c.Event != "" && r.Token == "" && r.Memory.Has(c.Event, c.Now):`,
		by:  "TestJudge",
	},
	{
		file: "lock/driver/row.go", breaks: "P5", bug: "a stale event without an Event runs",
		old: `case c.Order != "" && r.Memory`,
		new: `case c.Order != "" && c.Event != "" && r.Memory`,
		by:  "TestConformance",
	},
	{
		file: "lock/driver/row.go", breaks: "P5", bug: "an event with the order of a completed one runs",
		old: `c.Order <= r.Memory.HighestOrder`,
		new: `c.Order < r.Memory.HighestOrder`,
		by:  "TestJudge",
	},
	{
		file: "lock/driver/row.go", breaks: "P4, F3", bug: "a copy of an earlier round undoes a later one",
		old: `r.Stamp.After(c.Stamp) || r.Until.After(c.Until)`,
		new: `r.Until.After(c.Until)`,
		by:  "TestJudge",
	},
	{
		file: "lock/driver/row.go", breaks: "P2, F4", bug: "a late copy of the claim undoes a renewal",
		old: `r.Stamp.After(c.Stamp) || r.Until.After(c.Until)`,
		new: `r.Stamp.After(c.Stamp)`,
		by:  "TestJudge",
	},
	{
		file: "lock/driver/row.go", breaks: "F1", bug: "a claim that meets its own first copy is refused",
		old: `		return Granted
	case r.Token != "" && !r`,
		new: `		return Held
	case r.Token != "" && !r`,
		by: "TestJudge",
	},
	{
		file: "lock/driver/row.go", breaks: "P1", bug: "a lease can be taken at the instant at which it ends",
		old: `!r.Until.Before(c.Now)`,
		new: `r.Until.After(c.Now)`,
		by:  "TestJudge",
	},
	{
		file: "lock/driver/row.go", breaks: "P4, F3", bug: "a late claim of the last stamp brings a released lock back",
		old: `!r.Stamp.Before(c.Stamp)`,
		new: `r.Stamp.After(c.Stamp)`,
		by:  "TestJudge",
	},
	{
		file: "lock/driver/row.go", breaks: "F41", bug: "a row of a newer version is taken",
		old: `	case r.Newer:
		return Newer
	case c.Event`,
		new: `	case c.Event`,
		by:  "TestJudge",
	},
	{
		file: "lock/driver/row.go", breaks: "P3", bug: "a fence does not rise when a name is taken again by a clock that is behind",
		old: `next := r.Fence + 1`,
		new: `next := r.Fence`,
		by:  "TestTake",
	},
	{
		file: "lock/driver/row.go", breaks: "P3, F56", bug: "the fences of a row that went back are given again",
		old: `max(next, now.UnixMicro())`,
		new: `max(next, now.Add(-time.Hour).UnixMicro())`,
		by:  "TestConformance",
		in:  "stores/memstore",
	},
	{
		file: "lock/driver/row.go", breaks: "P3, F56", bug: "the fence of a row that went back only counts on, in a whole history",
		old: `r.Fence = max(next, now.UnixMicro())`,
		new: `r.Fence = next`,
		by:  "TestSimulation",
		in:  "stores/memstore",
	},
	{
		file: "lock/driver/row.go", breaks: "P2, F21", bug: "anybody renews a lease",
		old: `r.Newer || ended || !r.OwnedBy(n.Token) || n.Until`,
		new: `r.Newer || ended || n.Until`,
		by:  "TestConformance",
		in:  "stores/memstore",
	},
	{
		file: "lock/driver/row.go", breaks: "P2, F4", bug: "a late renewal moves the lease back",
		old: ` || n.Until.Before(r.Until) {`,
		new: ` {`,
		by:  "TestConformance",
		in:  "stores/memstore",
	},
	{
		file: "lock/driver/row.go", breaks: "P1, F21", bug: "a late holder releases the lock of the next one",
		old: `owner, raise := r.OwnedBy(s.Token) &&`,
		new: `owner, raise := (r.OwnedBy(s.Token) || !s.Abandon && r.Token != "") &&`,
		by:  "TestConformance",
		in:  "stores/memstore",
	},
	{
		file: "lock/driver/row.go", breaks: "P1, F44", bug: "to give up a claim frees another owner's row",
		old: `	if owner {
		r.Token,`,
		new: `	if owner || raise {
		r.Token,`,
		by: "TestConformance",
		in: "stores/memstore",
	},
	{
		file: "lock/driver/row.go", breaks: "P4, F44", bug: "a claim that is given up while another owns the row raises no stamp",
		old: `s.Abandon && r.Stamp.Before(s.Stamp)`,
		new: `s.Abandon && r.Token == "" && r.Stamp.Before(s.Stamp)`,
		by:  "TestConformance",
		in:  "stores/memstore",
	},
	{
		file: "lock/driver/row.go", breaks: "F21", bug: "a request without a token owns a row that nobody holds",
		old: `token != "" && r.Token == token`,
		new: `r.Token == token`,
		by:  "TestEmptyTokenOwnsNothing",
		in:  "stores/memstore",
	},
	{
		file: "lock/driver/row.go", breaks: "F41", bug: "a settlement changes the row of a newer version",
		old: `if r.Newer || !owner && !raise {`,
		new: `if !owner && !raise {`,
		by:  "TestConformance",
		in:  "stores/memstore",
	},
	{
		file: "lock/driver/memory.go", breaks: "P5", bug: "an event is refused for ever",
		old: `c.Event == event && !c.Expired(now)`,
		new: `c.Event == event`,
		by:  "TestMemoryHas",
	},
	{
		file: "lock/driver/memory.go", breaks: "P5", bug: "an event is forgotten a millisecond early",
		old: `c.Until.UnixMilli() < now.UnixMilli()`,
		new: `c.Until.UnixMilli() <= now.UnixMilli()`,
		by:  "TestMemoryHas",
	},
	{
		file: "stores/memstore/memstore.go", breaks: "F23", bug: "an expired row is not deleted when its name is claimed",
		old: `	if expired(row, c.Now) {
		*row = driver.Row{}
	}
`,
		new: ``,
		by:  "TestExpiredRowIsDeleted",
	},
	{
		file: "internal/event/stored/stored.go", breaks: "F28", bug: "two pairs of namespace and name are stored as one",
		old: `return url.PathEscape(namespace) + "/" }`,
		new: `_ = url.PathEscape; return namespace + "/" }`,
		by:  "TestName",
	},
	{
		file: "internal/event/stored/stored.go", breaks: "F28", bug: "a name can be chosen to collide with the hash of another",
		old: `utf8.ValidString(s) && !strings.HasPrefix(s, hashPrefix)`,
		new: `utf8.ValidString(s)`,
		by:  "TestName|TestEvent",
	},
	{
		file: "internal/event/stored/stored.go", breaks: "F28", bug: "a name can be chosen to collide with the slot of another",
		old: `storable(name) && !strings.HasPrefix(name, SlotPrefix) {`,
		new: `storable(name) {`,
		by:  "TestName",
	},
	{
		file: "internal/event/stored/stored.go", breaks: "F27", bug: "names that are not UTF-8 are stored, and become one in JSON",
		old: `utf8.ValidString(s) && !strings`,
		new: `utf8.ValidString(hashPrefix) && !strings`,
		by:  "TestName|TestEvent",
	},
	{
		file: "internal/event/stored/stored.go", breaks: "F27", bug: "a name that is too long for a store is stored",
		old: `if len(prefix)+len(name) <= maxName && storable`,
		new: `if len(name) <= maxName && storable`,
		by:  "TestName",
	},
	{
		file: "internal/event/stored/stored.go", breaks: "F27, F46", bug: "an event that is too long for a row is stored",
		old: `if len(event) <= maxEvent && storable`,
		new: `if len(event) <= 2*maxEvent && storable`,
		by:  "TestEvent",
	},
}
