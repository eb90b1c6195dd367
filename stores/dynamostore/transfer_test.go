package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

const (
	accounts   = 20
	opening    = 200 // what is on each account at first
	transfers  = 2000
	deliveries = 5  // of each transfer, at least
	most       = 20 // attempts
	timeout    = 10 * time.Second
)

// TestTransferExactlyOnce delivers 2,000 transfers at least 10,000 times:
// several at the same time, again after failures and again although they
// succeeded, to processes that die at any moment or are frozen beyond their
// lease, over connections that lose requests and answers and deliver copies up
// to 20 minutes late. Nothing in the handler is idempotent, and yet each
// transfer is made or refused once, and the balances are right to the cent.
func TestTransferExactlyOnce(t *testing.T) { // P5, F2, F5, F6, F7, F8, F9, F15, F19, F21, F53
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newClearing(t)
		moves := make([]move, transfers)
		if testing.Short() {
			moves = moves[:transfers/10] // for the race detector
		}
		for i := range moves {
			from := w.random.IntN(accounts)
			moves[i] = move{id: fmt.Sprint(i), from: account(from), to: account((from + 1 + w.random.IntN(accounts-1)) % accounts), amount: 1 + w.random.IntN(50)}
		}
		for _, m := range moves {
			w.wg.Go(func() { w.source(m) })
		}
		w.wg.Wait()
		w.late.Wait()
		w.check(t, moves)
	})
}

type move struct {
	id, from, to string
	amount       int
}

func account(i int) string { return fmt.Sprint("account-", i) }

// clearing is a bank, and what happens to it.
type clearing struct {
	bank *bank
	wg   sync.WaitGroup

	mix  fault.Mix
	late fault.Copies

	mu       sync.Mutex
	random   *rand.Rand
	met      map[fault.Fault]int
	happened map[string]int
	failures []string
}

func newClearing(t *testing.T) *clearing {
	t.Helper()
	balances := map[string]string{}
	for i := range accounts {
		balances[account(i)] = strconv.Itoa(opening)
	}
	mix := fault.Usual(1, 100)
	mix.Late = 20 * time.Minute
	return &clearing{bank: newBank(t, balances), mix: mix, random: rand.New(rand.NewPCG(1, 2)), met: map[fault.Fault]int{}, happened: map[string]int{}}
}

// chance counts and reports whether something happens, in n of 1,000 cases.
func (w *clearing) chance(n int, what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.random.IntN(1000) >= n {
		return false
	}
	w.happened[what]++
	return true
}

// count counts what happened, and returns how often it has.
func (w *clearing) count(what string) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.happened[what]++
	return uint64(w.happened[what])
}

// failed reports whether something went wrong: then the rest does not matter.
func (w *clearing) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.failures) > 0
}

func (w *clearing) sleep(limit time.Duration) {
	w.mu.Lock()
	d := time.Duration(w.random.Int64N(int64(limit)))
	w.mu.Unlock()
	time.Sleep(d)
}

// source delivers a transfer until it is acknowledged, and more often.
func (w *clearing) source(m move) {
	w.sleep(time.Hour)
	acknowledged := false
	for i := 0; (i < deliveries || !acknowledged && i < most) && !w.failed(); i++ {
		if w.chance(200, "copies at the same time") {
			w.wg.Go(func() { w.deliver(m) })
		}
		acknowledged = w.deliver(m) || acknowledged
		w.sleep(2 * time.Minute)
	}
	if !acknowledged && !w.failed() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failures = append(w.failures, "transfer "+m.id+" was never acknowledged")
	}
}

// deliver gives the transfer to a process of its own. It reports whether the
// process acknowledged it.
func (w *clearing) deliver(m move) bool {
	plan := w.mix.Client(w.count("deliveries"))
	p := &process{w: w, network: &fault.Transport{Next: w, Dialect: fault.DynamoDB, Plan: plan, Late: &w.late}}
	p.client = clientOver(p)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	locker, err := lock.New(dynamostore.New(p.client, table), &lock.Options{Lease: lock.UntilDeadline(), Logger: discard})
	if err != nil {
		panic(err)
	}
	key := lock.Key{Name: "transfer/" + m.id, Event: m.id}
	err = locker.Do(ctx, key, func(ctx context.Context) error { return p.handle(ctx, m) })
	if errors.Is(err, lock.ErrCompleted) {
		err = nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for f, n := range plan.Met() {
		w.met[f] += n
		p.clean = p.clean && f == fault.None
	}
	if p.dead {
		return false
	}
	if err == nil && p.clean && p.requests != p.due {
		w.failures = append(w.failures, fmt.Sprintf("transfer %s took %d requests, want %d", m.id, p.requests, p.due))
	}
	return err == nil
}

// process is an execution environment: the handler and its connection.
type process struct {
	w       *clearing
	network http.RoundTripper
	client  *dynamodb.Client

	dead, clean   bool // it was killed; it got the lock at once, and nothing went wrong
	thaws         time.Time
	requests, due int
}

// freeze stops the process for a while: its heartbeat, too, sends nothing.
func (p *process) freeze(d time.Duration) {
	p.w.mu.Lock()
	p.thaws = time.Now().Add(d)
	p.w.mu.Unlock()
	time.Sleep(d)
}

// thawed returns once the process is not frozen any more.
func (p *process) thawed() {
	p.w.mu.Lock()
	d := time.Until(p.thaws)
	p.w.mu.Unlock()
	time.Sleep(d)
}

func (p *process) die() {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.dead = true
}

func (p *process) isDead() bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.dead
}

// handle makes the transfer. If there is not enough on the account, another
// transaction notes that. Repeated, either would have its effect again.
func (p *process) handle(ctx context.Context, m move) error {
	p.w.mu.Lock()
	p.clean, p.due = p.requests == 1, 2
	p.w.mu.Unlock()
	if p.w.chance(20, "deaths before the transaction") {
		p.die()
	}
	if p.w.chance(20, "frozen holders") {
		p.w.wg.Go(func() { time.Sleep(timeout + 3*time.Second); p.w.deliver(m) }) // to another process
		p.freeze(timeout + 5*time.Second)
		ctx = context.WithoutCancel(ctx) // and its end goes unnoticed
	}
	in := transfer(m.from, m.to, strconv.Itoa(m.amount))
	in.TransactItems = append(in.TransactItems, increment("made", m.id))
	_, err := dynamostore.Transact(ctx, p.client, in)
	if errors.As(err, new(*types.TransactionCanceledException)) && !errors.As(err, new(*lock.StoreError)) {
		p.w.count("declined transactions")
		p.w.mu.Lock()
		p.due++
		p.w.mu.Unlock()
		_, err = dynamostore.Transact(ctx, p.client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{increment("refused", m.id)}})
	}
	switch {
	case errors.Is(err, lock.ErrLost):
		p.w.count("lost leases")
	case errors.As(err, new(*lock.StoreError)):
		p.w.count("transactions that failed")
	}
	if p.w.chance(20, "deaths after the transaction") {
		p.die()
	}
	return err
}

// increment counts what happened to a transfer.
func increment(what, id string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String("accounts"), Key: map[string]types.AttributeValue{"account": &types.AttributeValueMemberS{Value: what + "/" + id}},
		UpdateExpression: aws.String("SET balance = if_not_exists(balance, :zero) + :one"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":zero": &types.AttributeValueMemberN{Value: "0"}, ":one": &types.AttributeValueMemberN{Value: "1"},
		},
	}}
}

// RoundTrip implements http.RoundTripper: what happens to a process between its
// requests. What happens to these on their way, its network decides.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	w := p.w
	w.sleep(20 * time.Millisecond)
	p.thawed()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if w.chance(10, "deaths before a request") {
		p.die()
	}
	if p.isDead() {
		return nil, fault.ErrBroken
	}
	w.mu.Lock()
	p.requests++
	w.mu.Unlock()
	answer, err := p.network.RoundTrip(r)
	if w.chance(10, "deaths after a request") {
		p.die()
	}
	if p.isDead() {
		return nil, fault.ErrBroken
	}
	return answer, err
}

// RoundTrip implements http.RoundTripper: it is the bank's network, and counts
// the requests whose process has given them up.
func (w *clearing) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := fault.InProcess{Handler: w.bank.Server}.RoundTrip(r)
	if _, waited := r.Context().Deadline(); !waited && err == nil && answer.StatusCode == http.StatusOK {
		w.count("late requests that were applied or recognised")
	}
	return answer, err
}

// check compares the accounts with what the transfers should have made of them.
func (w *clearing) check(t *testing.T, moves []move) {
	t.Helper()
	for _, failure := range w.failures {
		t.Error(failure)
	}
	if t.Failed() {
		return
	}
	balances, made := map[string]int{}, 0
	for i := range accounts {
		balances[account(i)] = opening
	}
	for _, m := range moves {
		switch outcome := w.bank.balance("made/"+m.id) + " made, " + w.bank.balance("refused/"+m.id) + " refused"; outcome {
		case "1 made,  refused":
			made++
			balances[m.from] -= m.amount
			balances[m.to] += m.amount
		case " made, 1 refused":
		default:
			t.Errorf("transfer %s: %s", m.id, outcome)
		}
	}
	for name, want := range balances {
		if got := w.bank.balance(name); got != strconv.Itoa(want) || want < 0 {
			t.Errorf("%s has %s, want %d", name, got, want)
		}
	}
	t.Logf("%d of %d transfers made; %v %v", made, len(moves), w.happened, w.met)
	if testing.Short() {
		return // not everything can happen to so few
	}
	for what, least := range map[string]int{
		"deliveries": transfers * deliveries, "copies at the same time": 1000, "declined transactions": 100, "lost leases": 10, "transactions that failed": 5,
		"frozen holders": 20, "deaths before the transaction": 20, "deaths after the transaction": 20, "deaths before a request": 50, "deaths after a request": 50, "late requests that were applied or recognised": 5,
	} {
		if w.happened[what] < least {
			t.Errorf("%d %s, want at least %d", w.happened[what], what, least)
		}
	}
	for f := range w.mix.PerMille {
		if w.met[f] < 50 {
			t.Errorf("%d times %v, want at least 50", w.met[f], f)
		}
	}
	if made < transfers/10 {
		t.Errorf("%d transfers were made", made)
	}
}
