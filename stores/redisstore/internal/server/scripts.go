package server

import (
	_ "embed" // the scripts
	"fmt"
	"strconv"
	"strings"

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
	//go:embed scripts/check.lua
	checkText string

	acquireScript = redis.NewScript(rowScript + acquireText)
	renewScript   = redis.NewScript(rowScript + renewText)
	settleScript  = redis.NewScript(rowScript + settleText)
	markScript    = redis.NewScript(rowScript + markText)
	joinScript    = redis.NewScript(rowScript + joinText)
	readScript    = redis.NewScript(rowScript + readText)
	checkScript   = redis.NewScript(rowScript + checkText)
)

// reply is the answer of a script.
type reply struct {
	applied  int64
	now      int64  // the server's clock in microseconds
	tookOver string // from the dead owner that the row names: "1" if the claim did so just now
	settings []string
	fields   map[string]string // of the row
	// If the claim was granted just now: the fence before it, and the stamp of the
	// claim before it, or of the row if nobody held it. A copy has its own stamp.
	fenceBefore, claimBefore string
}

// parseReply reads what the function answer of scripts/row.lua returns.
func parseReply(v any) (reply, error) {
	parts, ok := v.([]any)
	if !ok || len(parts) != 7 {
		return reply{}, fmt.Errorf("the script answered %v", v)
	}
	var r reply
	var now, row string
	var settings []any
	for i, to := range []any{&r.applied, &now, &r.tookOver, &settings, &row, &r.fenceBefore, &r.claimBefore} {
		if !assign(to, parts[i]) {
			return reply{}, fmt.Errorf("the script answered %v", v)
		}
	}
	for _, s := range settings {
		r.settings = append(r.settings, fmt.Sprint(s))
	}
	var err error
	if r.now, err = strconv.ParseInt(now, 10, 64); err != nil {
		return reply{}, fmt.Errorf("the script answered %v: %w", v, err)
	}
	if r.fields, ok = unpack(row); !ok {
		return reply{}, fmt.Errorf("the script answered %v", v)
	}
	return r, nil
}

// unpack returns the fields of a row from what the function pack of
// scripts/row.lua returns, and reports whether that can be read.
func unpack(row string) (fields map[string]string, ok bool) {
	fields = map[string]string{}
	for row != "" {
		var name, value string
		if name, row, ok = cutText(row); !ok {
			return nil, false
		}
		if value, row, ok = cutText(row); !ok {
			return nil, false
		}
		fields[name] = value
	}
	return fields, true
}

// cutText returns the first text, which stands after its length.
func cutText(packed string) (text, rest string, ok bool) {
	length, rest, _ := strings.Cut(packed, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(rest) {
		return "", "", false
	}
	return rest[:n], rest[n:], true
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
