package server

import (
	_ "embed" // the scripts
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed scripts/row.lua
	rowScript string
	//go:embed scripts/acquire.lua
	acquireText string
	//go:embed scripts/renew.lua
	renewText string
	//go:embed scripts/settle.lua
	settleText string
	//go:embed scripts/mark.lua
	markText string
	//go:embed scripts/join.lua
	joinText string
	//go:embed scripts/read.lua
	readText string

	acquireScript = redis.NewScript(rowScript + acquireText)
	renewScript   = redis.NewScript(rowScript + renewText)
	settleScript  = redis.NewScript(rowScript + settleText)
	markScript    = redis.NewScript(rowScript + markText)
	joinScript    = redis.NewScript(rowScript + joinText)
	readScript    = redis.NewScript(rowScript + readText)
)

// reply is the answer of a script.
type reply struct {
	applied  int64
	now      int64    // the server's clock in microseconds
	previous []string // the run of the holder that died: holder, event, payload and stamp; nil: there was none
	settings []string
	fields   map[string]string // of the row
	before   string            // the fence before the claim, if it was granted just now
}

// parseReply reads what the function answer of scripts/row.lua returns.
func parseReply(v any) (reply, error) {
	parts, ok := v.([]any)
	if !ok || len(parts) != 6 {
		return reply{}, fmt.Errorf("the script answered %v", v)
	}
	var r reply
	var err error
	var now string
	var previous, settings, fields []any
	for i, to := range []any{&r.applied, &now, &previous, &settings, &fields, &r.before} {
		if !assign(to, parts[i]) {
			return reply{}, fmt.Errorf("the script answered %v", v)
		}
	}
	if r.now, err = strconv.ParseInt(now, 10, 64); err != nil {
		return reply{}, fmt.Errorf("the script answered %v: %w", v, err)
	}
	for _, s := range settings {
		r.settings = append(r.settings, fmt.Sprint(s))
	}
	for _, p := range previous {
		r.previous = append(r.previous, fmt.Sprint(p))
	}
	r.fields = make(map[string]string, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		var name, value string
		if !assign(&name, fields[i]) || !assign(&value, fields[i+1]) {
			return reply{}, fmt.Errorf("the script answered %v", v)
		}
		r.fields[name] = value
	}
	return r, nil
}

// assign sets what to points to, and reports whether v has its type.
func assign(to, v any) (ok bool) {
	switch to := to.(type) {
	case *int64:
		*to, ok = v.(int64)
	case *string:
		*to, ok = v.(string)
	case *[]any:
		*to, ok = v.([]any)
	}
	return ok
}
