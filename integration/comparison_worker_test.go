//go:build unix

package integration_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"cirello.io/dynamolock/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// What the tools need beside DynamoDB.
const (
	caseRedisVariable = "LAMBDALOCK_TEST_REDIS"
	caseFilesVariable = "LAMBDALOCK_TEST_FILES"
)

// caseEvent is one delivery of a case, as peers/worker.py describes it.
type caseEvent struct {
	Name     string `json:"name"`
	Event    string `json:"event"`
	Payload  string `json:"payload"`
	Order    string `json:"order"`
	Patience int64  `json:"patience"` // ms
}

type (
	caseHandler func(context.Context, caseEvent) (string, error)
	// caseLock takes a lock by its name, and returns what releases it.
	caseLock func(ctx context.Context, name string) (release func() error, err error)
)

// around is what a handler becomes under the lock.
func (l caseLock) around(h caseHandler) caseHandler {
	return func(ctx context.Context, e caseEvent) (string, error) {
		release, err := l(ctx, e.Name)
		if err != nil {
			return "", err
		}
		result, err := h(ctx, e)
		return result, errors.Join(err, release())
	}
}

// caseTools are the ways to use the Go tools that docs/COMPARISON.md compares.
var caseTools = map[string]func(r *peerRun, lease time.Duration) (caseHandler, error){
	"lambdalock_run":  lambdalockCase(),
	"lambdalock_fail": lambdalockCase(middleware.OnInterrupted(middleware.Fail)),
	"lambdalock_skip": lambdalockCase(middleware.OnInterrupted(middleware.Skip),
		middleware.OnHeld(middleware.Wait(askPeriod)), middleware.OnCompleted(middleware.Replay)),
	"lambdalock_ask": func(r *peerRun, lease time.Duration) (caseHandler, error) {
		return lambdalockCase(middleware.OnInterrupted(middleware.Ask(func(context.Context, caseEvent) (bool, error) {
			return r.ask(peerAnswer{Asks: true}) == "done", nil
		})))(r, lease)
	},
	"dynamolock_wait": dynamolockCase(dynamolock.WithRefreshPeriod(askAgain), dynamolock.WithAdditionalTimeToWaitForLock(askPeriod)),
	"dynamolock_fail": dynamolockCase(dynamolock.FailIfLocked()),
	"redislock":       redislockCase(nil),
	"redislock_wait":  redislockCase(&redislock.Options{RetryStrategy: redislock.LinearBackoff(askAgain)}),
	"redsync":         redsyncCase(redsync.WithTries(1)),
	"redsync_wait":    redsyncCase(),
	"flock":           flockCase(syscall.LOCK_NB),
	"flock_wait":      flockCase(0),
	"own_lock":        ownLockCase,
	"own_put":         ownPutCase,
}

func lambdalockCase(opts ...middleware.Option) func(*peerRun, time.Duration) (caseHandler, error) {
	return func(r *peerRun, lease time.Duration) (caseHandler, error) {
		key := func(_ context.Context, e caseEvent) (lock.Key, error) {
			return lock.Key{Name: e.Name, Event: e.Event, Order: e.Order, Payload: e.Payload}, nil
		}
		return middleware.WithLock(key, r.caseHandler, middleware.Group(opts...),
			middleware.Store(dynamostore.New(newPeerClient(), table)), middleware.Logger(discard),
			middleware.Engine(func(o *lock.Options) { o.Lease, o.Grace = lock.FixedLease(lease), 500*time.Millisecond })), nil
	}
}

func dynamolockCase(opts ...dynamolock.AcquireLockOption) func(*peerRun, time.Duration) (caseHandler, error) {
	return func(r *peerRun, lease time.Duration) (caseHandler, error) {
		locks, err := dynamolock.New(newPeerClient(), table, dynamolock.WithPartitionKeyName("lock"),
			dynamolock.WithLeaseDuration(lease), dynamolock.WithHeartbeatPeriod(lease/4))
		return caseLock(func(ctx context.Context, name string) (func() error, error) {
			held, err := locks.AcquireLockWithContext(ctx, name, opts...)
			return func() error { _, err := locks.ReleaseLockWithContext(ctx, held); return err }, err
		}).around(r.caseHandler), err
	}
}

func redislockCase(o *redislock.Options) func(*peerRun, time.Duration) (caseHandler, error) {
	return func(r *peerRun, lease time.Duration) (caseHandler, error) {
		client, err := newRedis(os.Getenv(caseRedisVariable))
		return caseLock(func(ctx context.Context, name string) (func() error, error) {
			held, err := redislock.Obtain(ctx, client, name, lease, o)
			return func() error { return held.Release(ctx) }, err
		}).around(r.caseHandler), err
	}
}

func redsyncCase(opts ...redsync.Option) func(*peerRun, time.Duration) (caseHandler, error) {
	return func(r *peerRun, lease time.Duration) (caseHandler, error) {
		client, err := newRedis(os.Getenv(caseRedisVariable))
		return caseLock(func(ctx context.Context, name string) (func() error, error) {
			m := redsync.New(goredis.NewPool(client)).NewMutex(name, append(opts, redsync.WithExpiry(lease))...)
			return func() error { _, err := m.UnlockContext(ctx); return err }, m.LockContext(ctx)
		}).around(r.caseHandler), err
	}
}

func flockCase(how int) func(*peerRun, time.Duration) (caseHandler, error) {
	return func(r *peerRun, _ time.Duration) (caseHandler, error) {
		return caseLock(func(_ context.Context, name string) (func() error, error) {
			f, err := os.OpenFile(filepath.Join(os.Getenv(caseFilesVariable), name), os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				return nil, err
			}
			if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|how); err != nil {
				return nil, errors.Join(err, f.Close())
			}
			return f.Close, nil
		}).around(r.caseHandler), nil
	}
}

// ownLockCase is a conditional write that takes a lock, with an expiry.
func ownLockCase(r *peerRun, lease time.Duration) (caseHandler, error) {
	own := rawLock{newPeerClient()}
	return caseLock(func(ctx context.Context, name string) (func() error, error) {
		nonce := rand.Text()
		return func() error { return own.release(ctx, name, nonce) }, own.acquire(ctx, name, nonce, lease)
	}).around(r.caseHandler), nil
}

// ownPutCase is a conditional put of the event before its handler, after which
// a duplicate is skipped.
func ownPutCase(r *peerRun, _ time.Duration) (caseHandler, error) {
	client := newPeerClient()
	return func(ctx context.Context, e caseEvent) (string, error) {
		_, err := client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: aws.String(table), Item: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: e.Event}},
			ConditionExpression: aws.String("attribute_not_exists(#id)"), ExpressionAttributeNames: map[string]string{"#id": "lock"},
		})
		switch {
		case errors.As(err, new(*types.ConditionalCheckFailedException)):
			return "", nil
		case err != nil:
			return "", err
		}
		return r.caseHandler(ctx, e)
	}, nil
}

// caseHandler is the handler of a case: it ends as the line says that it reads.
func (r *peerRun) caseHandler(ctx context.Context, _ caseEvent) (string, error) {
	r.answer.Ran++
	r.answer.Began = moment()
	l, _ := lock.FromContext(ctx)
	r.answer.Fence = l.Fence
	if r.ask(r.answer) == "fail" {
		return "", errors.New("the handler failed")
	}
	return strconv.Itoa(os.Getpid()), nil
}

// handleCase handles an event of a case, as peers/worker.py does.
func (r *peerRun) handleCase(handle caseHandler, line string) error {
	var e caseEvent
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		return err
	}
	r.answer = peerAnswer{Asked: moment()}
	ctx, cancel := context.WithTimeout(context.Background(), invocationTime)
	defer cancel()
	r.insist(ctx, time.Duration(e.Patience)*time.Millisecond, func() (err error) {
		r.answer.Result, err = handle(ctx, e)
		return err
	})
	r.answer.Over = true
	return nil
}
