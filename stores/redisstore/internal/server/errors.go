package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"regexp"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// passing are the answers of a server that refuses a request now and may take
// it later.
var passing = map[string]string{
	"LOADING":     "the server is reading its data from disk",
	"BUSY":        "another client's script blocks the server",
	"TRYAGAIN":    "",
	"CLUSTERDOWN": "",
	"MASTERDOWN":  "",
	"READONLY":    "the server is a replica: after a failover the client finds the new primary if it connects through the primary's endpoint, Sentinel or the cluster",
	"NOREPLICAS":  "the server has fewer replicas than min-replicas-to-write",
	"MISCONF":     "the server cannot save its data to disk, so it refuses writes",
	"OOM":         "the server's memory is full: give it more, or let old data expire",
	"MAXCLIENTS":  "the server has too many connections: raise maxclients, or make the pools of the clients smaller",
}

// lasting are the answers that a later try would not change. An answer in
// neither list may be one that passes: a proxy's, or one of a service that
// speaks the protocol.
var lasting = map[string]string{
	"NOPERM":    permissions,
	"NOAUTH":    "set the user and password of the client",
	"WRONGPASS": "correct the user and password of the client",
	"DENIED":    "the server is in protected mode: set a password, or bind it to the function's network",
	"WRONGTYPE": "the key is used by something else: keys that begin with " + keyPrefix + " belong to this library",
	"MOVED":     "the server belongs to a cluster: use redis.NewClusterClient",
	"ASK":       "the server belongs to a cluster: use redis.NewClusterClient",
	notCluster:  "the server does not belong to a cluster: use redis.NewClient",
	noDatabase:  "the server does not have that database: correct DB in the client's options",
	noCommand:   "the server, or a proxy before it, lacks a command: the scripts need EVALSHA, EVAL, TIME, HMGET, HGETALL, HSET, HDEL and PEXPIREAT",
	badScript:   "",
}

const permissions = "allow the user: ~" + keyPrefix + "* +evalsha +eval +time +hmget +hgetall +hset +hdel +pexpireat"

// clusterPermissions are what a cluster client needs besides, to learn which
// server has a key: with CLUSTER SHARDS, or in older versions CLUSTER SLOTS,
// and ASKING while slots move.
const clusterPermissions = "for a cluster client, allow the user also +cluster|slots +cluster|shards +asking"

// Codes of answers that have none.
const (
	notCluster = "not a cluster"
	noDatabase = "no database"
	noCommand  = "no command"
	badScript  = "bad script"
)

var (
	// wrapped finds the code in the answer of a server before version 7, which
	// wraps the errors of a script's commands.
	wrapped = regexp.MustCompile(`-([A-Z]{3,}) `)
	// command finds the command that was denied.
	command = regexp.MustCompile(`permissions to run the '([^']+)' command`)
	// unknown finds that there is no such command, in the words of several servers
	// and proxies, and failed that a script does not work.
	unknown = regexp.MustCompile(`(?i)(unknown|unsupported) (redis |valkey )?command|command is not (available|allowed|supported)|wrong number of arg`)
	failed  = regexp.MustCompile(`(?i)attempt to (compare|perform|index|call|concatenate)|error compiling script`)
	// midway finds that a command stopped a script. Another one may have written
	// before, because the server checks each by itself.
	midway = regexp.MustCompile(`(?i)\b(from|in)( lua)? script|executing the script`)
)

// classify returns the error as a [*driver.Error], which says whether a later
// try would fail, too, whether the server answered, and whether the request may
// have been applied. Without an answer that is known it may have been, unless
// the client had no connection to send it on. If the client repeats requests,
// an earlier attempt may have been applied before the one that was refused.
func (s *Server) classify(err error) error {
	e := &driver.Error{Store: s.name, Err: err}
	var again followed
	repeats := s.repeats || errors.As(err, &again)
	var answered redis.Error
	if !errors.As(err, &answered) {
		e.Hint, e.Err = s.explain(err)
		e.Lasting = errors.Is(err, redis.ErrClosed)
		e.Unapplied = !repeats && (e.Lasting || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted))
		return e
	}
	e.Answered = true
	code := codeOf(answered.Error())
	if s.cluster && (code == "MOVED" || code == "ASK") { // the client has followed as many as it may
		return e
	}
	if hint, ok := passing[code]; ok {
		e.Unapplied, e.Hint = !repeats, hint
		return e
	}
	if hint, ok := lasting[code]; ok {
		stopped := code == badScript || midway.MatchString(answered.Error())
		e.Lasting, e.Unapplied, e.Hint = true, !repeats && !stopped, hint
		if found := command.FindStringSubmatch(answered.Error()); found != nil {
			e.Action = found[1]
		}
		switch root, _, _ := strings.Cut(e.Action, "|"); root {
		case "scan":
			e.Hint = "allow the user +scan, which only those need who list rows"
		case "cluster", "asking":
			e.Hint = clusterPermissions
		}
	}
	return e
}

// codeOf returns the first word of an answer, or the code that stands for it.
func codeOf(answer string) string {
	code, _, _ := strings.Cut(answer, " ")
	if code != "ERR" {
		return code
	}
	switch {
	case strings.Contains(answer, "max number of clients"):
		return "MAXCLIENTS"
	case strings.Contains(answer, "ACL failure in script"), // Valkey, and Redis since 7.2
		strings.Contains(answer, "The user executing the script can't"):
		return "NOPERM"
	case strings.Contains(answer, "unauthenticated"): // refused for its length before it was read
		return "NOAUTH"
	case strings.Contains(answer, "cluster support disabled"):
		return notCluster
	case strings.Contains(answer, "DB index is out of range"):
		return noDatabase
	}
	if found := wrapped.FindStringSubmatch(answer); found != nil {
		return found[1]
	}
	switch {
	case failed.MatchString(answer):
		return badScript
	case unknown.MatchString(answer):
		return noCommand
	}
	return code
}

// silence is the error of a request without an answer, in plain words.
type silence struct {
	text string
	err  error
}

func (e *silence) Error() string { return e.text }
func (e *silence) Unwrap() error { return e.err }

// explain returns why there was no answer, and what to check.
func (s *Server) explain(err error) (hint string, cause error) {
	hint = "check host and port; a server that encrypts in transit needs rediss:// in a URL, or TLSConfig in the client's options; a function must be in the server's VPC, and the server's security group must let it in"
	var timeout net.Error
	var name *net.DNSError
	var plain tls.RecordHeaderError
	var pool exhaustedPool
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: check host and port", err
	case errors.As(err, &name) && name.IsNotFound:
		return "check the host's name", err
	case errors.As(err, &plain):
		return "the server does not use TLS: write redis:// in a URL, or leave TLSConfig out of the client's options", err
	case errors.Is(err, redis.ErrClosed):
		return "the client was closed: close it when nothing uses the store any more", err
	case errors.Is(err, redis.ErrPoolExhausted):
		return "all connections of the client are in use: raise MaxActiveConns in its options", err
	case errors.Is(err, redis.ErrPoolTimeout), errors.As(err, &pool),
		s.pool != nil && errors.Is(err, context.DeadlineExceeded) && exhausted(s.pool):
		return "all connections of the client are in use: raise PoolSize in its options", err
	case errors.Is(err, context.Canceled):
		return "", &silence{"the caller's context ended before there was an answer", err}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return hint, &silence{"no answer in time", err}
	}
	return hint, err
}

// exhausted reports whether all connections of the client are in use. A request
// whose context ends while it waits for one has the same error as one that
// waits for a connection to be opened.
func exhausted(c *redis.Client) bool {
	stats := c.PoolStats()
	return stats.IdleConns == 0 && int(stats.TotalConns) >= c.Options().PoolSize
}

// exhaustedPool is the error of a request to a node of a cluster whose pool was
// exhausted.
type exhaustedPool struct{ error }

func (e exhaustedPool) Unwrap() error { return e.error }

// unreadable returns a lasting error without Unapplied: an acquire may have
// been applied.
func (s *Server) unreadable(err error) error {
	return &driver.Error{Store: s.name, Lasting: true, Err: err}
}
