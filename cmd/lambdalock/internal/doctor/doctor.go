// Package doctor checks that a store can keep locks, and that a function is
// deployed so that no event is lost.
package doctor

import (
	"errors"
	"fmt"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Level is how bad a line is.
type Level string

// The levels of a line.
const (
	OK      Level = "ok"
	Warning Level = "warning" // loses events or locks under circumstances
	Error   Level = "error"   // no lock can be acquired, or two callers can hold one
)

// Line is what one check found.
type Line struct {
	Level Level  `json:"level"`
	Check string `json:"check"`
	For   string `json:"for,omitempty"` // who has to change something; empty if it is OK
	Text  string `json:"text"`
}

// Those who have to change something.
const (
	forYou      = "you"
	forAccess   = "who gives you permissions"
	forStore    = "the store's owner"
	forFunction = "the function's owner"
	forName     = "who set the table's name"
)

// The checks that have no rule of package rules.
const (
	checkStore    = "store"
	checkWrite    = "write"
	checkRead     = "read"
	checkList     = "list"
	checkLatency  = "latency"
	checkTable    = "table"
	checkKey      = "key"
	checkTTL      = "ttl"
	checkBilling  = "billing"
	checkClock    = "clock"
	checkReplicas = "replicas"
	checkCluster  = "cluster"
	checkMemory   = "memory"
	checkKept     = "persistence"
	checkPlace    = "place"
	checkMapping  = "mapping"
	checkStopped  = "concurrency"
	checkUnread   = "unread"
)

// lines collects what is found.
type lines []Line

func (l *lines) ok(check, format string, args ...any) { l.add(OK, check, "", format, args...) }

func (l *lines) warn(check, whom, format string, args ...any) {
	l.add(Warning, check, whom, format, args...)
}

func (l *lines) fail(check, whom, format string, args ...any) {
	l.add(Error, check, whom, format, args...)
}

func (l *lines) add(level Level, check, whom, format string, args ...any) {
	*l = append(*l, Line{level, check, whom, fmt.Sprintf(format, args...)})
}

// refused adds a line for a request that the store refused.
func (l *lines) refused(level Level, check string, err error) {
	whom := forStore
	switch {
	case denied(err):
		whom = forAccess
	case missing(err):
		whom = forName
	}
	l.add(level, check, whom, "%s", console.Plain(err))
}

// denied reports whether a permission is lacking.
func denied(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && e.Action != ""
}

// silent reports whether the store gave no answer, so that nothing is known of
// it.
func silent(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && !e.Lasting && !e.Answered
}
