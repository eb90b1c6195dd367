package fault

import "strings"

// RedisAnswer returns the error with which a server of Redis, or the proxy
// before it, answers a command that meets the fault, or "" if the connection
// breaks.
func RedisAnswer(f Fault, command string) string {
	switch f {
	case Throttle:
		return "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	case Conflict:
		return "TRYAGAIN Multiple keys request during rehashing of slot"
	case Deny:
		return "NOPERM User default has no permissions to run the '" + strings.ToLower(command) + "' command"
	case Fail:
		return "LOADING Redis is loading the dataset in memory"
	case ApplyThenFail:
		return "ERR upstream failure" // the proxy's
	}
	return ""
}
