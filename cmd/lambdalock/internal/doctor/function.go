package doctor

import (
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/deployed"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// Function judges a deployed function by the rules of the CDK construct.
func Function(f *deployed.Function) []Line {
	var found lines
	subject := "function " + f.Name + ": "
	if f.Table == "" {
		found.warn(checkPlace, forFunction, "%sit has no %s: unless its code sets the option Store, every invocation fails; it locks by default in the namespace %s", subject, dynamostore.TableVariable, f.DefaultNamespace())
	} else {
		found.ok(checkPlace, "%sit locks in table %s, by default in the namespace %s", subject, f.Table, f.DefaultNamespace())
	}
	if f.Stopped {
		found.warn(checkStopped, forFunction, "%sits reserved concurrency is 0, so it does not run, and asynchronous events are lost unless it has a dead-letter queue or failure destination: raise it, or delete it", subject)
	}
	for _, mapping := range f.Disabled {
		found.warn(checkMapping, forFunction, "%sits event source mapping %s is disabled, so nothing is delivered: enable it", subject, mapping)
	}
	for _, finding := range f.Settings.Check() {
		found.finding(finding, forFunction, subject)
	}
	for i := range f.Mappings {
		for _, finding := range f.Mappings[i].Check(f.Settings.Timeout) {
			found.finding(finding, forFunction, subject)
		}
	}
	for _, what := range f.Unseen {
		found.ok(checkUnread, "%snot looked at is %s", subject, what)
	}
	for _, err := range f.Unread {
		whom := forYou
		if denied(err) {
			whom = forAccess
		}
		found.warn(checkUnread, whom, "%s%s", subject, console.Plain(err))
	}
	return found
}

// WrongTable returns the line for a function whose table cannot be opened.
func WrongTable(err error) Line {
	return Line{Error, checkPlace, forFunction, console.Plain(err)}
}
