package redelivery

import (
	"errors"
	"fmt"
	"sync"
)

// atATime is how many requests are under way at the same time.
const atATime = 10

var errNoAnswer = errors.New("the request ended without an answer")

// each calls f for every number below n, several at a time, and returns the
// errors. A panic of f, which would end the process on these goroutines, is an
// error, and so is the end of its goroutine: only what returned nil succeeded.
func each(n int, f func(i int) error) []error {
	errs := make([]error, n)
	numbers := make(chan int, n)
	for i := range n {
		errs[i] = errNoAnswer
		numbers <- i
	}
	close(numbers)
	var workers sync.WaitGroup
	for range min(n, atATime) {
		workers.Go(func() {
			for i := range numbers {
				errs[i] = protected(i, f)
			}
		})
	}
	workers.Wait()
	return errs
}

func protected(i int, f func(i int) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f(i)
}
