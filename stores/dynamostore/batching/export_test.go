package batching

import (
	"fmt"

	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// MaxKnown is how many names are known at least.
const MaxKnown = maxKnown

// Learn tells c that n more names have a row.
func Learn(c dynamostore.Client, names string, n int) {
	for i := range n {
		c.(*front).learn(fmt.Sprint(names, i))
	}
}
