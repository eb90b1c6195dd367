package main

import (
	"testing"

	"github.com/lambdalock/lambdalock/examples/composition/suite"
	"github.com/lambdalock/lambdalock/middleware"
)

func TestHandler(t *testing.T) {
	t.Parallel()
	suite.HTTP(t, func(charge suite.Charge, opts ...middleware.Option) any {
		return handler(charge, opts...)
	})
}
