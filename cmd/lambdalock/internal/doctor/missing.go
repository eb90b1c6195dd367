package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
)

// missing reports whether there is no such table.
func missing(err error) bool {
	api := smithy.APIError(nil)
	return errors.As(err, &api) && api.ErrorCode() == "ResourceNotFoundException"
}

const (
	mostPages = 20 // of a hundred tables, that are looked at
	mostNames = 5  // that are printed
)

// Similar adds to the line of a table that does not exist which tables have
// similar names, or why that cannot be said.
func Similar(ctx context.Context, client dynamodb.ListTablesAPIClient, table string, found []Line) {
	i := slices.IndexFunc(found, func(l Line) bool { return l.For == forName })
	if i < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var similar []string
	pages := dynamodb.NewListTablesPaginator(client, &dynamodb.ListTablesInput{})
	for range mostPages {
		if !pages.HasMorePages() {
			break
		}
		page, err := pages.NextPage(ctx)
		if err != nil {
			found[i].Text += ". Whether another table has a similar name cannot be said: " + console.Plain(err)
			return
		}
		for _, name := range page.TableNames {
			if alike(name, table) {
				similar = append(similar, name)
			}
		}
	}
	if len(similar) > 0 {
		found[i].Text += ". Here there is " + strings.Join(similar[:min(len(similar), mostNames)], ", ")
	}
}

// alike reports whether one name may be another one misspelt: a quarter of it
// differs at most, or one contains the other.
func alike(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return strings.Contains(a, b) || strings.Contains(b, a) || distance(a, b) <= max(len(a), len(b))/4
}

// distance returns how many characters must be changed, added or removed.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}
