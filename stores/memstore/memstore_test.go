package memstore_test

import (
	"testing"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

func TestConformance(t *testing.T) {
	locktest.Run(t, locktest.Harness{
		Open:  func(*testing.T) lock.Store { return memstore.New() },
		Newer: func(_ *testing.T, s lock.Store, name string) { s.(*memstore.Store).MakeNewer(name) },
	})
}
