package integration_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
)

// line is what a child tells its parent: one of these.
type line struct {
	Op    *operation     `json:",omitempty"`
	Hold  *locktest.Hold `json:",omitempty"`
	End   *turnEnd       `json:",omitempty"`
	Fault map[string]int `json:",omitempty"` // how many requests met each
}

// operation is a request to a store, or one copy of it, as the child saw it.
type operation struct {
	Kind              modelOp `json:"k"`
	Name              string  `json:"n"`
	Token             string  `json:"t"`
	Now, Stamp, Until int64   `json:",omitempty"`
	Call, Return      int64   // nanoseconds since 1970
	Completes         bool    `json:",omitempty"`
	Copy              bool    `json:",omitempty"` // it arrived late, after its sender had an answer or had given it up
	Unknown           bool    `json:",omitempty"`
	Applied           bool    `json:",omitempty"`
	Owner             string  `json:",omitempty"`
	Fence             int64   `json:",omitempty"`
}

// turnEnd says that one attempt to use a name has ended.
type turnEnd struct {
	Holder string
	At     time.Time
	Left   left
}

// left is what is left of a holder's claims, as far as its answers say.
type left int

const (
	leftNothing left = iota // they were refused, given up or released
	leftCopy                // one was refused while a copy of it may have been on its way
	leftClaim               // one was granted or has no answer
	leftUnknown             // the same, and the request that ends it has no answer
)

func (o *operation) toModel(server *serverClock) porcupine.Operation {
	return porcupine.Operation{
		Input: modelInput{
			op: o.Kind, name: o.Name, token: o.Token, now: o.Now, stamp: o.Stamp, until: o.Until, completes: o.Completes,
			server: server, call: o.Call, answer: o.Return,
		},
		Output: modelOutput{unknown: o.Unknown, applied: o.Applied, owner: o.Owner, fence: o.Fence},
		Call:   o.Call, Return: o.Return,
	}
}

// witness is a store that writes down every request to the one below it. The
// network below must report what it sends, as a [wire] does.
type witness struct {
	driver.Store
	tell func(line)
	// proxied means that copies are made beyond the wire, of every request.
	proxied bool
	now     func() int64 // nanoseconds since 1970

	mu     sync.Mutex
	tokens map[string]left
}

func newWitness(store driver.Store, tell func(line)) *witness {
	return &witness{Store: store, tell: tell, now: func() int64 { return time.Now().UnixNano() }, tokens: map[string]left{}}
}

// Acquire implements [driver.Store].
func (w *witness) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	o := operation{Kind: opAcquire, Name: c.Name, Token: c.Token, Now: c.Now.UnixMicro(), Stamp: c.Stamp.UnixMicro(), Until: c.Until.UnixMicro()}
	row, ok, err := w.do(ctx, &o, func(ctx context.Context) (driver.Row, bool, error) {
		row, ok, err := w.Store.Acquire(ctx, c)
		if err == nil && !ok && row.Judge(c) == driver.Completed {
			o.Kind = opSkip
		}
		return row, ok, err
	})
	var e *driver.Error
	if rejected := errors.As(err, &e) && e.Unapplied; ok || err != nil && !rejected {
		w.note(c.Token, leftClaim)
	}
	return row, ok, err
}

// Renew implements [driver.Store].
func (w *witness) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	o := operation{Kind: opRenew, Name: r.Name, Token: r.Token, Now: r.Now.UnixMicro(), Until: r.Until.UnixMicro()}
	return w.do(ctx, &o, func(ctx context.Context) (driver.Row, bool, error) { return w.Store.Renew(ctx, r) })
}

// Settle implements [driver.Store].
func (w *witness) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	o := operation{Kind: opRelease, Name: t.Name, Token: t.Token, Stamp: t.Stamp.UnixMicro(), Completes: t.Memory != nil}
	if t.Abandon {
		o.Kind = opAbandon
	}
	row, ok, err := w.do(ctx, &o, func(ctx context.Context) (driver.Row, bool, error) { return w.Store.Settle(ctx, t) })
	if err == nil {
		w.note(t.Token, leftNothing)
	} else {
		w.note(t.Token, leftUnknown)
	}
	return row, ok, err
}

func (w *witness) note(token string, l left) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens[token] = l
}

func (w *witness) noteCopy(token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tokens[token] == leftNothing {
		w.tokens[token] = leftCopy
	}
}

// left returns what is left of a token, and forgets the token.
func (w *witness) left(token string) left {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer delete(w.tokens, token)
	return w.tokens[token]
}

// openTurns returns the holders that ended without an attempt to give up what
// they may own.
func openTurns(ends map[string]turnEnd) []string {
	var open []string
	for holder, end := range ends {
		if end.Left == leftClaim {
			open = append(open, holder)
		}
	}
	return open
}

func (w *witness) do(ctx context.Context, o *operation, send func(context.Context) (driver.Row, bool, error)) (driver.Row, bool, error) {
	p := &passage{operation: *o, tell: w.tell, now: w.now}
	o.Call = w.now()
	row, ok, err := send(context.WithValue(ctx, passageKey{}, p))
	o.Return = w.now()
	o.Applied, o.Owner, o.Fence = ok, row.Token, row.Fence
	copied := p.end(o, err) || w.proxied
	if refused := o.Kind == opAcquire && !ok && err == nil; refused && copied {
		w.noteCopy(o.Token)
	}
	return row, ok, err
}

// passage is the way of one request to the server. A request may be sent
// several times: each time but one is an operation whose outcome is not known.
// If the request has no answer, all are.
type passage struct {
	operation operation
	tell      func(line)
	now       func() int64

	mu      sync.Mutex
	ended   bool
	refused bool // the sender knows
	leaving int  // requests that have not arrived
	sent    []operation
}

type passageKey struct{}

// errNotRepeated is the error of a copy that no client sends.
var errNotRepeated = errors.New("nobody repeats a claim whose refusal was answered")

// beginPassage is called when a request that may change something leaves, and
// the func that it returns when the answer is there. The request does not
// leave if it is a late copy of a claim whose refusal was answered: the engine
// assumes that there is none, because clients repeat only what had no answer.
func beginPassage(ctx context.Context) (arrived func(error), err error) {
	p, ok := ctx.Value(passageKey{}).(*passage)
	if !ok {
		return func(error) {}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused {
		return nil, errNotRepeated
	}
	p.leaving++
	call := p.now()
	return func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.leaving--
		o := p.operation
		o.Call, o.Return, o.Unknown = call, p.now(), true
		if err != nil {
			o.Return = forever // it may still be on its way
		}
		if o.Copy = p.ended; p.ended {
			p.tell(line{Op: &o})
			return
		}
		p.sent = append(p.sent, o)
	}, nil
}

// end writes down what was sent until now, and says whether a copy of the
// request is on its way.
func (p *passage) end(answered *operation, err error) (copied bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.refused = err == nil && !answered.Applied && answered.Kind == opAcquire
	if err == nil {
		p.tell(line{Op: answered})
		if len(p.sent) == 1 {
			p.sent = nil // it is the one that was answered
		}
	}
	copied = p.leaving > 0
	for _, o := range p.sent { // which of them was answered is not known
		copied = copied || o.Return == forever
		p.tell(line{Op: &o})
	}
	return copied
}

// reported reports every write that it sends to the request's passage.
type reported struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r reported) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method == http.MethodGet || q.Method == http.MethodHead {
		return r.RoundTripper.RoundTrip(q)
	}
	arrived, err := beginPassage(q.Context())
	if err != nil {
		return nil, err
	}
	resp, err := r.RoundTripper.RoundTrip(q)
	arrived(err)
	return resp, err
}

// unanswered returns the error of a script that got no answer.
func unanswered(err error) error {
	if errors.As(err, new(redis.Error)) {
		return nil
	}
	return err
}
