package batching

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
)

const (
	// maxStatements is the service's limit on a batch.
	// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
	maxStatements = 25
	// maxRequests is how many requests are under way at a time before one leaves
	// that is not full. More would not be sooner, but less full.
	maxRequests = 8
	// longestWait is how long a request waits for others, unless all that may come
	// are there. A request takes several times as long.
	longestWait = time.Millisecond
	// patience is how long a request that is due waits for earlier ones to be
	// answered. One that is slow or hangs must not hold up claims of other names.
	patience = 10 * longestWait
)

// queue holds the statements that wait for others to travel with.
type queue struct {
	client *dynamodb.Client

	mu       sync.Mutex
	callers  map[*invocation.Batch]int // that have no answer yet
	waiting  []*member                 // some of them
	due      bool                      // those that wait have waited long enough
	timer    *time.Timer
	waited   time.Duration // how long a member has waited, as far as the timer tells
	requests int           // under way, with several members each
}

// member is a statement with its caller.
type member struct {
	name      string
	statement types.BatchStatementRequest
	options   []func(*dynamodb.Options)
	batch     *invocation.Batch

	ctx    context.Context
	travel *travel // nil while it waits
	done   chan struct{}
	answer
	panicked any // with what the client panicked; nil: it did not
}

// travel is a request with several members.
type travel struct {
	callers int    // that still want an answer
	cancel  func() // ends the request
}

// send sends m together with others and returns what UpdateItem would have, or
// one of the reasons to go on otherwise.
func (q *queue) send(ctx context.Context, m *member) (*dynamodb.UpdateItemOutput, error) {
	m.ctx, m.done = ctx, make(chan struct{})
	q.join(m)
	select {
	case <-m.done:
	case <-ctx.Done():
		if !q.leave(m) {
			return nil, ctx.Err()
		}
		if <-m.done; errors.Is(m.err, context.Canceled) {
			return nil, ctx.Err()
		}
	}
	if m.panicked != nil {
		panic(m.panicked) // on the goroutine of the record, which recovers
	}
	return m.out, m.err
}

func (q *queue) join(m *member) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := len(q.waiting) == 0
	q.waiting = append(q.waiting, m)
	q.count(m.batch, 1)
	q.due = q.due || q.callers[m.batch] >= m.batch.Claims
	q.depart()
	if first && len(q.waiting) > 0 {
		q.timer = time.AfterFunc(longestWait, q.tick)
	}
}

// tick is called each time that longestWait has passed while a member waits.
func (q *queue) tick() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return
	}
	q.waited += longestWait
	q.due = true
	q.timer.Reset(longestWait)
	q.depart()
}

// leave takes m out of the queue, so that no late copy of it is sent. If no
// other member waits for its request, it ends the request. It reports whether
// to wait for the answer: if it is there already, or if the request is ending,
// which must not outlive its last caller.
func (q *queue) leave(m *member) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-m.done:
		return true
	default:
	}
	if m.travel == nil {
		q.waiting = slices.DeleteFunc(q.waiting, func(w *member) bool { return w == m })
		q.count(m.batch, -1)
		q.depart()
		return false
	}
	if m.travel.callers--; m.travel.callers > 0 {
		return false
	}
	m.travel.cancel()
	return true
}

// count counts the callers of a batch.
func (q *queue) count(b *invocation.Batch, by int) {
	if q.callers[b] += by; q.callers[b] == 0 {
		delete(q.callers, b)
	}
}

// depart sends what may leave: a full request, or what is due while few
// requests are under way. Full requests do not wait, because with a slow table
// the claims behind them would run out of time.
func (q *queue) depart() {
	for len(q.waiting) >= maxStatements || q.due && len(q.waiting) > 0 && (q.requests < maxRequests || q.waited >= patience) {
		switch members := q.take(); len(members) {
		case 0:
		case 1:
			q.answer(members[0], answer{err: errAlone}, nil)
		default:
			q.start(members)
		}
	}
	if len(q.waiting) == 0 {
		q.due, q.waited = false, 0
		if q.timer != nil {
			q.timer.Stop()
		}
	}
}

// take removes the members of the next request from the queue. A request has
// each name once, and no member whose context has ended.
func (q *queue) take() []*member {
	var taken, rest []*member
	for _, m := range q.waiting {
		switch {
		case m.ctx.Err() != nil:
		case len(taken) == maxStatements || slices.ContainsFunc(taken, func(t *member) bool { return t.name == m.name }):
			rest = append(rest, m)
		default:
			taken = append(taken, m)
		}
	}
	q.waiting = rest
	return taken
}

// start sends members in one request. It lives until the last of their contexts
// ends. Values and options are those of the first.
func (q *queue) start(members []*member) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(members[0].ctx))
	t := &travel{callers: len(members), cancel: cancel}
	for _, m := range members {
		m.travel = t
	}
	q.requests++
	go func() {
		all := answers(len(members), nil, errors.New("the client has ended its goroutine"))
		defer func() { // also after a panic or a runtime.Goexit of the client
			cancel()
			q.arrive(members, all, recover())
		}()
		all = q.execute(ctx, members)
	}()
}

func (q *queue) execute(ctx context.Context, members []*member) []answer {
	in := &dynamodb.BatchExecuteStatementInput{Statements: make([]types.BatchStatementRequest, len(members))}
	for i, m := range members {
		in.Statements[i] = m.statement
	}
	out, err := q.client.BatchExecuteStatement(ctx, in, members[0].options...)
	return answers(len(members), out, err)
}

// arrive hands out the answers to a request, or what the client panicked with.
func (q *queue) arrive(members []*member, all []answer, panicked any) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests--
	for i, m := range members {
		q.answer(m, all[i], panicked)
	}
	q.depart()
}

func (q *queue) answer(m *member, a answer, panicked any) {
	q.count(m.batch, -1)
	m.answer, m.panicked = a, panicked
	close(m.done)
}

// alone sends a request by itself. Its caller counts, so that no other waits
// for it.
func (q *queue) alone(ctx context.Context, b *invocation.Batch, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	count := func(by int) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.count(b, by)
	}
	count(1)
	defer count(-1)
	return q.client.UpdateItem(ctx, in, options...)
}
