// Package defaultlog has the logger of a program that sets none.
package defaultlog

import (
	"fmt"
	"log/slog"
	"os"
)

// above is a level that no line has.
const above = slog.LevelError + 4

// Levels has what Lambda takes as a function's application log level.
// https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
var Levels = map[string]slog.Level{
	"TRACE": slog.LevelDebug, "DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo, "WARN": slog.LevelWarn, "ERROR": slog.LevelError, "FATAL": above,
}

// DropsPlain reports whether the function's log level makes Lambda drop lines
// that do not say their level: they count as INFO.
func DropsPlain() bool { return Levels[os.Getenv("AWS_LAMBDA_LOG_LEVEL")] > slog.LevelInfo }

// Logger returns slog.Default(). If that is Go's own, which writes text, and
// the function's log format is JSON, it returns one that writes JSON to
// standard error instead, as lambdacontext.NewLogger does: of a line of text,
// Lambda does not see the level.
// https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-logformat.html
func Logger() *slog.Logger {
	l := slog.Default()
	if os.Getenv("AWS_LAMBDA_LOG_FORMAT") != "JSON" || !isGos(l) {
		return l
	}
	return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{
		Level: Levels[os.Getenv("AWS_LAMBDA_LOG_LEVEL")], ReplaceAttr: asLambda,
	}))
}

// isGos reports whether no default logger was set.
func isGos(l *slog.Logger) bool { return fmt.Sprintf("%T", l.Handler()) == "*slog.defaultHandler" }

// asLambda names the members as the runtimes of Lambda do. Without a timestamp,
// the level does not count.
func asLambda(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		a.Key = "timestamp"
	case slog.MessageKey:
		a.Key = "message"
	}
	return a
}
