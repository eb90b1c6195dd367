package redistest

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // the digest by which Redis knows scripts
	"encoding/hex"
	"strconv"
	"sync"

	"github.com/alicebob/miniredis/v2"
	minserver "github.com/alicebob/miniredis/v2/server"
	lua "github.com/yuin/gopher-lua"
)

// engine runs scripts over the commands of miniredis. Unlike miniredis, it does
// not make a new interpreter for every script, which would take most of the
// time of a long simulation. The other tests use the engine of miniredis, and
// that of redis-server.
type engine struct {
	mini *miniredis.Miniredis

	mu      sync.Mutex // a server runs one script at a time
	state   *lua.LState
	scripts map[string]*lua.LFunction // by digest
	out     bytes.Buffer
	writer  *bufio.Writer
	reader  *bufio.Reader
}

func newEngine(mini *miniredis.Miniredis) *engine {
	e := &engine{mini: mini, state: lua.NewState(), scripts: map[string]*lua.LFunction{}}
	e.writer, e.reader = bufio.NewWriter(&e.out), bufio.NewReader(&e.out)
	calls := e.state.NewTable()
	calls.RawSetString("call", e.state.NewFunction(func(l *lua.LState) int {
		v, err := e.call(l)
		if err != nil {
			l.Error(lua.LString(err.Error()), 1)
		}
		l.Push(v)
		return 1
	}))
	calls.RawSetString("pcall", e.state.NewFunction(func(l *lua.LState) int {
		v, err := e.call(l)
		if err != nil {
			failure := l.NewTable()
			failure.RawSetString("err", lua.LString(err.Error()))
			v = failure
		}
		l.Push(v)
		return 1
	}))
	e.state.SetGlobal("redis", calls)
	return e
}

// call runs a command of a script.
func (e *engine) call(l *lua.LState) (lua.LValue, error) {
	args := make([]string, l.GetTop())
	for i := range args {
		args[i] = lua.LVAsString(l.Get(i + 1))
	}
	e.out.Reset()
	e.writer.Reset(&e.out)
	e.mini.Server().Dispatch(minserver.NewPeer(e.writer), args)
	_ = e.writer.Flush()
	e.reader.Reset(&e.out)
	v, err := minserver.ParseReply(e.reader)
	return toLua(l, v), err
}

func toLua(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case []any:
		table := l.CreateTable(len(v), 0)
		for _, each := range v {
			table.Append(toLua(l, each))
		}
		return table
	case int:
		return lua.LNumber(v)
	case int64:
		return lua.LNumber(v)
	case []byte:
		return lua.LString(v)
	case string:
		return lua.LString(v)
	}
	return lua.LFalse
}

// fromLua returns an answer with the types that go-redis gives it.
func fromLua(v lua.LValue) any {
	switch v := v.(type) {
	case *lua.LTable:
		all := []any{}
		for i := 1; i <= v.Len(); i++ {
			all = append(all, fromLua(v.RawGetInt(i)))
		}
		return all
	case lua.LNumber:
		return int64(v)
	case lua.LString:
		return string(v)
	}
	return nil
}

// run runs EVAL or EVALSHA.
func (e *engine) run(command []string) (any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	digest := command[1]
	if command[0] == "EVAL" {
		sum := sha1.Sum([]byte(command[1])) //nolint:gosec // see above
		digest = hex.EncodeToString(sum[:])
	}
	script := e.scripts[digest]
	if script == nil && command[0] == "EVALSHA" {
		return nil, ServerError("NOSCRIPT No matching script. Please use EVAL.")
	}
	if script == nil {
		var err error
		if script, err = e.state.LoadString(command[1]); err != nil {
			return nil, ServerError("ERR " + err.Error())
		}
		e.scripts[digest] = script
	}
	keys, err := strconv.Atoi(command[2])
	if err != nil {
		return nil, ServerError("ERR " + err.Error())
	}
	args := command[3:]
	e.set("KEYS", args[:keys])
	e.set("ARGV", args[keys:])
	if err := e.state.CallByParam(lua.P{Fn: script, NRet: 1, Protect: true}); err != nil {
		return nil, ServerError("ERR " + err.Error())
	}
	v := e.state.Get(-1)
	e.state.Pop(1)
	return fromLua(v), nil
}

func (e *engine) set(name string, values []string) {
	table := e.state.CreateTable(len(values), 0)
	for _, v := range values {
		table.Append(lua.LString(v))
	}
	e.state.SetGlobal(name, table)
}
