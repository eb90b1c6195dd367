// worker is a Go program that runs on several hosts, outside Lambda: an ECS
// service, or machines with cron. Each of them asks once a minute whether the
// nightly report is due, and one of them builds it. If that host dies, another
// one builds the report when the lease has ended, after 30 s at the latest. If
// it is stopped (SIGTERM), it releases the lock, and another one takes over.
//
// It needs the lock table in LOCK_TABLE_NAME, and the permission of a function.
// ASK_EVERY changes the minute. ECS sends SIGTERM and after 30 s SIGKILL:
// https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_StopTask.html
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	every, err := time.ParseDuration(cmp.Or(os.Getenv("ASK_EVERY"), "1m"))
	if err != nil || every <= 0 {
		log.Fatal("worker: set ASK_EVERY to a duration such as 1m")
	}
	store, err := dynamostore.Open(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	locker, err := lock.New(store, &lock.Options{Namespace: "worker"})
	if err != nil {
		log.Fatal(err)
	}
	for ticks := time.NewTicker(every); ; {
		if err := nightly(ctx, locker, time.Now()); err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "the next tick tries again", "error", err)
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}

// nightly builds the report of a day, if no other host does or did.
func nightly(ctx context.Context, locker *lock.Locker, now time.Time) error {
	today := lock.Key{Name: "nightly", Event: now.UTC().Format(time.DateOnly)}
	held, err := locker.Acquire(ctx, today)
	if errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrCompleted) {
		return nil // another host builds it, or has built it
	}
	if err != nil {
		return err
	}
	if err := build(held.Context(), today.Event); err != nil {
		return errors.Join(err, held.Fail(err))
	}
	return held.Complete()
}

// build is where your own work goes. ctx ends when the lease is lost or the
// program is told to stop; then the work must end, too.
func build(ctx context.Context, day string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the report of %s: %w", day, context.Cause(ctx))
	}
	slog.InfoContext(ctx, "report built", "day", day)
	return nil
}
