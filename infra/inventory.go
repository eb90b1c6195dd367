package infra

import "github.com/lambdalock/lambdalock/infra/rules"

// inventory holds the resources that one synthesis has visited, by their paths.
type inventory struct {
	pathByID         map[string]string   // by path of the stack, "/", logical id
	pathsByID        map[string][]string // by logical id, from all stacks
	functions        map[string]*function
	qualifiers       map[string]qualifier
	queues           map[string]*queue
	consumed         map[string]reference // streams, by the paths of their consumers
	sourceKinds      map[string]string    // of queues, streams and tables
	asyncPermissions []asyncPermission
	asyncConfigs     map[string]*asyncConfig
	replicas         []replica
	subscribers      []subscriber
	async            map[string]map[string]*asyncInvocation // see asyncOf
	retention        map[string]rules.Number                // of queues and streams in seconds, by path
}

func newInventory() inventory {
	return inventory{
		pathByID:     map[string]string{},
		pathsByID:    map[string][]string{},
		functions:    map[string]*function{},
		qualifiers:   map[string]qualifier{},
		queues:       map[string]*queue{},
		consumed:     map[string]reference{},
		sourceKinds:  map[string]string{},
		retention:    map[string]rules.Number{},
		asyncConfigs: map[string]*asyncConfig{},
	}
}
