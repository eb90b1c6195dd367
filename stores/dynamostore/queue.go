package dynamostore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	// maxStatements is the service's limit on a batch.
	// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
	maxStatements = 25
	// maxRequests is how many requests are under way at a time. More would not be
	// sooner, but less full.
	maxRequests = 8
	// longestWait is how long a request waits for others, unless all that may come
	// are there. A request takes several times as long.
	longestWait = time.Millisecond
)

// queue holds the statements that wait for others to travel with.
type queue struct {
	client  batchClient
	options []func(*dynamodb.Options)

	mu       sync.Mutex
	waiting  []*member
	due      bool // those that wait have waited long enough
	timer    *time.Timer
	requests int // under way, with several members each
	underWay int // members that do not wait, but have no answer yet
}

// member is a statement with its caller.
type member struct {
	name      string
	statement types.BatchStatementRequest
	present   int // as many callers may come at the same time

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
	}
	if m.panicked != nil {
		panic(m.panicked) // on the goroutine of the record, which recovers
	}
	return m.out, m.err
}

func (q *queue) join(m *member) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, m)
	q.due = q.due || len(q.waiting)+q.underWay >= m.present
	q.depart()
	if len(q.waiting) == 1 && !q.due {
		q.timer = time.AfterFunc(longestWait, q.expire)
	}
}

func (q *queue) expire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due = len(q.waiting) > 0
	q.depart()
}

// leave takes m out of the queue, so that no late copy of it is sent, and ends
// a request that nobody waits for any more. It reports whether m has its answer
// already.
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
		q.depart()
	} else if m.travel.callers--; m.travel.callers == 0 {
		m.travel.cancel()
	}
	return false
}

// depart sends what is due, or fills a request, as long as not too many
// requests are under way.
func (q *queue) depart() {
	for q.requests < maxRequests && (len(q.waiting) >= maxStatements || q.due && len(q.waiting) > 0) {
		switch members := q.take(); len(members) {
		case 0:
		case 1:
			members[0].err = errInDoubt
			close(members[0].done)
		default:
			q.start(members)
		}
	}
	if len(q.waiting) == 0 {
		q.due = false
		if q.timer != nil {
			q.timer.Stop()
		}
	}
}

// take removes the members of the next request from the queue. A request has
// each name once, and nobody whose context has ended.
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
// ends. Of their values it has those of the first.
func (q *queue) start(members []*member) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(members[0].ctx))
	t := &travel{callers: len(members), cancel: cancel}
	for _, m := range members {
		m.travel = t
	}
	q.requests++
	q.underWay += len(members)
	go func() {
		defer cancel()
		answers, panicked := q.execute(ctx, members)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.requests--
		q.underWay -= len(members)
		for i, m := range members {
			m.answer, m.panicked = answers[i], panicked
			close(m.done)
		}
		q.depart()
	}()
}

// execute sends the request. It returns what the client panicked with.
func (q *queue) execute(ctx context.Context, members []*member) (all []answer, panicked any) {
	defer func() {
		if panicked = recover(); panicked != nil {
			all = make([]answer, len(members))
		}
	}()
	in := &dynamodb.BatchExecuteStatementInput{Statements: make([]types.BatchStatementRequest, len(members))}
	for i, m := range members {
		in.Statements[i] = m.statement
	}
	out, err := q.client.BatchExecuteStatement(ctx, in, q.options...)
	return answers(len(members), out, err), nil
}

// alone sends a request by itself. It counts among those under way, so that
// nobody waits for its caller.
func (q *queue) alone(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	count := func(by int) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.underWay += by
	}
	count(1)
	defer count(-1)
	return q.client.UpdateItem(ctx, in, options...)
}
