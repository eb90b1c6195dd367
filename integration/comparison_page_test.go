//go:build unix

package integration_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lambdalock/lambdalock/integration/servers"
)

// comparisonPage is what the cells are compared with.
const comparisonPage = "../docs/COMPARISON.md"

// compared is a tool, and the ways to use it, of which the first one is played
// in all cases.
type compared struct {
	name, language string
	file, pin      string // what stands before the version, in which file; or neither
	ways           []way
}

type way struct {
	id     string
	killed string // its row in the table of killed processes; if empty, there is none
}

var comparedTools = []compared{
	{"lambdalock", "Go", "", "", []way{
		{"lambdalock_run", "lambdalock"},
		{"lambdalock_skip", "lambdalock, `OnInterrupted(Skip)`"},
		{"lambdalock_fail", "lambdalock, `OnInterrupted(Fail)`"},
		{"lambdalock_ask", "lambdalock, `OnInterrupted(Ask(f))`"},
	}},
	{"Powertools for Python", "Python", "peers/requirements.txt", "aws-lambda-powertools==", []way{{"powertools_case", "Powertools for Python"}}},
	{"Powertools for TypeScript", "Node.js", "peers/package.json", `powertools/idempotency": "`, []way{{"powertools_case", "Powertools for TypeScript"}}},
	{"dynamolock", "Go", "go.mod", "cirello.io/dynamolock/v2 v", []way{{"dynamolock_wait", "dynamolock"}, {"dynamolock_fail", ""}}},
	{"redislock", "Go", "go.mod", "github.com/bsm/redislock v", []way{{"redislock", "redislock"}, {"redislock_wait", ""}}},
	{"redsync", "Go", "go.mod", "github.com/go-redsync/redsync/v4 v", []way{{"redsync", "redsync"}, {"redsync_wait", ""}}},
	{"`flock`", "Go", "", "", []way{{"flock", "`flock`"}, {"flock_wait", ""}}},
	{"a conditional write as a lock", "Go", "", "", []way{{"own_lock", "a conditional write as a lock"}}},
	{"a conditional put of the event", "Go", "", "", []way{{"own_put", "a conditional put of the event"}}},
}

// comparisonCases are the columns of the table.
var comparisonCases = []struct {
	name string
	play func(player) string // nil: what became of killed processes says it
}{
	{"two events of one resource", func(p player) string {
		how := p.second(true, func(_, second *caseEvent) { second.Event = rand.Text() })
		if how == "fails" || how == "waits" {
			return "one at a time"
		}
		return how
	}},
	{"a second delivery, the first completed", func(p player) string { return p.second(false, same) }},
	{"a second delivery, the first in progress", func(p player) string { return p.second(true, same) }},
	{"the same id with another content", func(p player) string {
		return p.second(false, func(_, second *caseEvent) { second.Payload = "2" })
	}},
	{"a stale event", func(p player) string {
		return p.second(false, func(first, second *caseEvent) { first.Order, second.Event, second.Order = "2", rand.Text(), "1" })
	}},
	{"the holder is killed", nil},
	{lateCase, player.lateHolder},
	{"fencing token", player.fence},
}

// lateCase is played with the first way to use a tool. The others differ from
// it in what they do with a name that is held, or with an event that is
// completed or was interrupted.
const lateCase = "a late holder, after a takeover"

func same(_, _ *caseEvent) {}

// outcome is what a way to use a tool came to: a word for each case, and its
// row in the table of killed processes.
type outcome struct {
	words  []string
	killed string
}

// TestComparison plays the cases of docs/COMPARISON.md with the tools that it
// compares, prints its tables, and fails if the page says something else.
func TestComparison(t *testing.T) {
	if os.Getenv(peersVariable) == "" {
		t.Skip("downloads other tools: run make compare")
	}
	page, err := os.ReadFile(comparisonPage)
	if err != nil {
		t.Fatal(err)
	}
	dynamo, redis := servers.Dynoxide(t), servers.Redis(t)
	newTable(t, dynamo)
	programs := peerPrograms(t)
	env := []string{caseRedisVariable + "=" + redis.Endpoint, caseFilesVariable + "=" + t.TempDir()}
	var mu sync.Mutex
	results := map[string]outcome{}
	t.Run("tools", func(t *testing.T) {
		for _, c := range comparedTools {
			for i, w := range c.ways {
				t.Run(c.name+"/"+w.id, func(t *testing.T) {
					t.Parallel() // most of the time is spent waiting
					p := programs[c.language]
					p.env = append(slices.Clone(p.env), env...)
					r := player{t, &peer{tool: tool{id: w.id, name: w.id}, program: p, endpoint: dynamo.Endpoint}}.play(w, i == 0)
					mu.Lock()
					defer mu.Unlock()
					results[c.name+w.id] = r
				})
			}
		}
	})
	if t.Failed() {
		return
	}
	fmt.Printf("\nOn %s and %s.\n", dynamo.Name, redis.Name)
	compareCells(t, string(page), results)
	compareKilled(t, string(page), results)
}

func (p player) play(w way, first bool) (r outcome) {
	var before kills
	if w.killed != "" {
		before = p.kill(killed, false, -1)
		after := p.kill(killed, true, -1)
		r.killed = fmt.Sprintf("| %s | %d, %d | %d, %d | %s |", w.killed, before.begun, before.effects, after.begun, after.effects, before.then)
	}
	for _, c := range comparisonCases {
		word := ""
		switch {
		case c.play == nil && w.killed != "":
			word = p.killedHolder(before)
		case c.play != nil && (first || c.name != lateCase):
			word = c.play(p)
		}
		r.words = append(r.words, word)
	}
	return r
}

// compareCells prints the table, and compares it with what stands before
// "(run)" in the cells of the page.
func compareCells(t *testing.T, page string, results map[string]outcome) {
	t.Helper()
	header, line := "| ", "|---"
	for _, c := range comparisonCases {
		header, line = header+"| "+c.name+" ", line+"|---"
	}
	fmt.Printf("\n%s|\n%s|\n", header, line)
	if !strings.Contains(page, "\n"+header+"|\n") {
		t.Errorf("%s has no table with these columns", comparisonPage)
	}
	links := regexp.MustCompile(`\[([^\]]*)\](?:\[[^\]]*\]|\([^)]*\))`)
	for _, c := range comparedTools {
		name := strings.TrimSpace(c.name + " " + version(t, c.file, c.pin))
		_, row, found := strings.Cut(page, "\n| "+name+" | ")
		row, _, _ = strings.Cut(row, "\n")
		cells := strings.Split(strings.TrimSuffix(row, " |"), " | ")
		if !found || len(cells) != len(comparisonCases) {
			t.Errorf("%s has no row of %s with as many cells", comparisonPage, name)
			cells = make([]string, len(comparisonCases))
		}
		text := "| " + name
		for i, column := range comparisonCases {
			var words []string
			for _, w := range c.ways {
				if word := results[c.name+w.id].words[i]; word != "" && !slices.Contains(words, word) {
					words = append(words, word)
				}
			}
			run := strings.Join(words, ", or ")
			text += " | " + run
			if says, _, _ := strings.Cut(links.ReplaceAllString(cells[i], "$1"), " (run)"); says != run {
				t.Errorf("%s, %s: the page says %q", name, column.name, says)
			}
		}
		fmt.Println(text + " |")
	}
}

// compareKilled prints the table of killed processes, which the page has, too.
func compareKilled(t *testing.T, page string, results map[string]outcome) {
	t.Helper()
	text := fmt.Sprintf("| of %d events each | killed before the effect: begun, effects | killed after the effect: begun, effects | then its delivery |\n|---|---|---|---|\n", killed)
	for _, c := range comparedTools {
		for _, w := range c.ways {
			if row := results[c.name+w.id].killed; row != "" {
				text += row + "\n"
			}
		}
	}
	fmt.Print("\n" + text)
	if !strings.Contains(page, "\n"+text) {
		t.Errorf("%s has not this table of killed processes", comparisonPage)
	}
}

// version returns what the pin in the file is followed by.
func version(t *testing.T, file, pin string) string {
	t.Helper()
	if file == "" {
		return ""
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v := regexp.MustCompile(regexp.QuoteMeta(pin) + `([0-9.]+)`).FindSubmatch(text)
	if v == nil {
		t.Fatalf("%s has no %s", file, pin)
	}
	return string(v[1])
}
