package server

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// said is an error with which a server answers.
type said string

func (e said) Error() string { return string(e) }

// RedisError implements [redis.Error].
func (said) RedisError() {}

var (
	passes   = driver.Error{Answered: true, Unapplied: true}
	lasts    = driver.Error{Answered: true, Unapplied: true, Lasting: true}
	partly   = driver.Error{Answered: true, Lasting: true} // perhaps after a write
	unknowns = driver.Error{Answered: true}
	unclear  = driver.Error{}
	unsent   = driver.Error{Unapplied: true}
)

// errorFlags has what each answer, and none, means to a client that sends each
// request once, and what the text names.
var errorFlags = []struct {
	err   error
	flags driver.Error
	says  string
}{
	{said("LOADING Redis is loading the dataset in memory"), passes, "from disk"},
	{said("BUSY Redis is busy running a script."), passes, "script"},
	{said("TRYAGAIN Multiple keys request"), passes, "TRYAGAIN"},
	{said("CLUSTERDOWN The cluster is down"), passes, "CLUSTERDOWN"},
	{said("MASTERDOWN Link with MASTER is down"), passes, "MASTERDOWN"},
	{said("READONLY You can't write against a read only replica."), passes, "replica"},
	{said("ERR Error running script (call to f_a): @user_script:5: @user_script: 5: -READONLY You can't write against a read only replica. "), passes, "replica"},
	{said("NOREPLICAS Not enough good replicas to write."), passes, "min-replicas-to-write"},
	{said("MISCONF Redis is configured to save RDB snapshots"), passes, "disk"},
	{said("OOM command not allowed when used memory > 'maxmemory'."), passes, "memory is full"},
	{said("ERR Error running script (call to f_a): @user_script:5: @user_script: 5: -OOM command not allowed when used memory > 'maxmemory'. "), passes, "memory is full"},
	{said("ERR max number of clients reached"), passes, "connections"},
	{said("NOPERM this user has no permissions to run the 'evalsha' command"), lasts, "+evalsha"},
	{said("NOPERM this user has no permissions to run the 'scan' command"), lasts, "+scan"},
	{said("NOPERM this user has no permissions to run the 'cluster|slots' command"), lasts, "+cluster|slots"},
	{said("NOPERM this user has no permissions to run the 'asking' command"), lasts, "+asking"},
	{said("ERR The user executing the script can't run this command or subcommand script: a"), partly, "+hset"},
	{said("ERR ACL failure in script: User u has no permissions to run the 'hset' command script: a, on @user_script:5."), partly, "hset was denied"},
	{said("ERR ACL failure in script: No permissions to access a key script: a, on @user_script:5."), partly, "~lambdalock:*"},
	{said("NOAUTH Authentication required."), lasts, "password"},
	{said("ERR Protocol error: unauthenticated multibulk length"), lasts, "password"},
	{said("WRONGPASS invalid username-password pair"), lasts, "password"},
	{said("DENIED Redis is running in protected mode"), lasts, "protected"},
	{said("WRONGTYPE Operation against a key holding the wrong kind of value"), lasts, "belong to this library"},
	{said("MOVED 3999 127.0.0.1:6381"), lasts, "NewClusterClient"},
	{said("ASK 3999 127.0.0.1:6381"), lasts, "NewClusterClient"},
	{said("ERR This instance has cluster support disabled"), lasts, "redis.NewClient"},
	{said("ERR DB index is out of range"), lasts, "DB"},
	{said("ERR unknown command 'EVALSHA', with args beginning with: 'a'"), lasts, "EVALSHA"},
	{said("ERR wrong number of arguments for 'evalsha' command"), lasts, "EVALSHA"},
	{said("ERR Error running script (call to f_a): @user_script:5: @user_script: 5: Unknown Redis command called from Lua script"), partly, "PEXPIREAT"},
	{said("ERR Unknown Redis command called from script script: a, on @user_script:5."), partly, "PEXPIREAT"},
	{said("ERR user_script:5: attempt to compare nil"), partly, "attempt"},
	{said("ERR Script attempted to access a non local key in a cluster node script"), unknowns, "non local"},
	{said("upstream failure"), unknowns, "upstream"},
	{said("UNKILLABLE Sorry the script already executed write commands"), unknowns, "UNKILLABLE"},
	{said("NOSCRIPT No matching script."), unknowns, "NOSCRIPT"},
	{io.EOF, unclear, "EOF"},
	{os.ErrDeadlineExceeded, unclear, "no answer in time"},
	{context.DeadlineExceeded, unclear, "no answer in time"},
	{context.Canceled, unclear, "caller's context"},
	{redis.ErrPoolTimeout, unsent, "PoolSize"},
	{redis.ErrPoolExhausted, unsent, "MaxActiveConns"},
	{redis.ErrClosed, driver.Error{Unapplied: true, Lasting: true}, "close it"},
}

// TestFlags: a client that repeats requests by itself may have had an answer
// that nobody saw, and one of a cluster that follows a redirection repeats
// them. To a cluster client, another redirection passes: a replica takes over.
func TestFlags(t *testing.T) { // F2, F8, F9, F13, F57
	t.Parallel()
	known := map[string]bool{}
	for _, c := range errorFlags {
		code := codeOf(c.err.Error())
		known[code] = true
		repeated, cluster, redirected := c.flags, c.flags, c.flags
		repeated.Unapplied, redirected.Unapplied = false, false
		if code == "MOVED" || code == "ASK" {
			cluster, redirected = unknowns, unknowns
		}
		for client, the := range map[string]struct {
			server *Server
			err    error
			want   driver.Error
		}{
			"once": {&Server{}, c.err, c.flags}, "repeats": {&Server{repeats: true}, c.err, repeated},
			"cluster": {&Server{cluster: true}, c.err, cluster}, "redirected": {&Server{cluster: true}, followed{c.err}, redirected},
		} {
			var e *driver.Error
			if err := the.server.classify(the.err); !errors.As(err, &e) || !errors.Is(err, c.err) ||
				e.Answered != the.want.Answered || e.Unapplied != the.want.Unapplied || e.Lasting != the.want.Lasting || e.Conflict != the.want.Conflict ||
				!strings.Contains(err.Error(), c.says) && the.want == c.flags {
				t.Errorf("%s, %v: %+v, want %+v and %q", client, c.err, e, the.want, c.says)
			}
		}
	}
	for _, code := range slices.Concat(slices.Collect(maps.Keys(passing)), slices.Collect(maps.Keys(lasting))) {
		if !known[code] {
			t.Errorf("the table lacks the code %s", code)
		}
	}
}
