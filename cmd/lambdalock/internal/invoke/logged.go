package invoke

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// tally counts the lines of a log by their outcome.
type tally map[lock.Outcome]int

// any reports whether one of these outcomes is in the log.
func (t tally) any(outcomes ...lock.Outcome) bool { return t.sum(outcomes...) > 0 }

func (t tally) sum(outcomes ...lock.Outcome) int {
	n := 0
	for _, o := range outcomes {
		n += t[o]
	}
	return n
}

var (
	// logLine finds an outcome in a line of the log, as text or as JSON. It is the
	// whole message: what precedes it is the level or the name of an attribute, and
	// what follows it is another attribute.
	logLine = regexp.MustCompile(`(?:[A-Z]{3,5}\s+|(\w+)"?[=:]\s?"?)lambdalock: ([a-z_]+)(?:"|\s*$|\s+[\w.]+[=:]|\s+\{)`)
	// colors are what a log handler for terminals adds.
	colors = regexp.MustCompile("\x1b\\[[0-9;]*m")
	// ignoredRecord finds the id of a record that was ignored.
	ignoredRecord = regexp.MustCompile(`lambdalock: ignored\b.*\brecord"?[=:]\s?"?([^"\s,}]+)`)
	// movedRecords finds the ids of the messages that redelivery.SQS has moved.
	movedRecords = regexp.MustCompile(`lambdalock: moved to the dead-letter queue\b.*\brecords"?[=:]\s?"?\[([^\]]+)\]`)
	// notBegun finds how many records of a batch one line says were not begun.
	notBegun = regexp.MustCompile(`\b(\d+) of \d+ records are returned\b`)
	// innerRefused is the error of a handler that got no lock of its own, which has
	// a line for that.
	innerRefused = regexp.MustCompile(`lambdalock: (?:key \S+ (?:is held by|stays held until)|no key:) `)
)

// logged counts the outcomes in the log of an invocation: of a line that is
// about several records, each of them.
func logged(lines []string) tally {
	outcomes := tally{}
	for _, line := range lines {
		if !strings.Contains(line, "lambdalock: ") {
			continue
		}
		for _, m := range logLine.FindAllStringSubmatch(colors.ReplaceAllString(line, ""), -1) {
			o := lock.Outcome(m[2])
			if strings.HasPrefix(m[1], "err") || o == middleware.OutcomeHandlerFailed && innerRefused.MatchString(line) {
				continue
			}
			n := 1
			if many := notBegun.FindStringSubmatch(line); o == middleware.OutcomeNotBegun && many != nil {
				n, _ = strconv.Atoi(many[1]) // it consists of digits
			}
			outcomes[o] += n
			break
		}
	}
	return outcomes
}

// named returns the records whose ids the pattern finds in the log.
func named(pattern *regexp.Regexp, records []*record, lines []string) []*record {
	found := map[string]bool{}
	for _, line := range lines {
		if m := pattern.FindStringSubmatch(line); m != nil {
			for _, id := range strings.FieldsFunc(m[1], func(r rune) bool { return strings.ContainsRune(`", `, r) }) {
				found[id] = true
			}
		}
	}
	var all []*record
	for _, r := range records {
		if found[r.id] {
			all = append(all, r)
		}
	}
	return all
}
