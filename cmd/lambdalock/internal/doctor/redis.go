package doctor

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// InfoClient is the part of a *redis.Client that Redis needs.
type InfoClient interface {
	Info(ctx context.Context, section ...string) *redis.StringCmd
	ClusterInfo(ctx context.Context) *redis.StringCmd
}

// Redis checks the settings of a server, which may lose locks. It says nothing
// of what the server does not report.
func Redis(ctx context.Context, client InfoClient, address string) []Line {
	var found lines
	text, err := client.Info(ctx).Result()
	if err != nil {
		remedy := "Start it, or correct its address"
		if errors.As(err, new(redis.Error)) { // it has answered
			remedy = "Allow the user +info"
		}
		found.warn(checkUnread, forStore, "the settings of Redis %s cannot be read: %v. %s", address, err, remedy)
		return found
	}
	info := parseInfo(text)
	switch policy := info["maxmemory_policy"]; {
	case policy == "":
	case policy == "noeviction" || info["maxmemory"] == "0":
		found.ok(checkMemory, "Redis %s deletes no locks when its memory is full", address)
	default:
		found.warn(checkMemory, forStore, "Redis %s has maxmemory-policy %s, so it may delete locks that are held when its memory is full: set it to noeviction", address, policy)
	}
	switch {
	case info["aof_enabled"] == "":
	case info["aof_enabled"] == "1":
		found.ok(checkKept, "Redis %s writes its changes to disk (appendonly); a crash loses the last ones unless appendfsync, which INFO does not tell, is always", address)
	default:
		found.warn(checkKept, forStore, "Redis %s has appendonly no, so a restart loses locks and completed events: set appendonly yes, and check the fence where that matters", address)
	}
	if info["cluster_enabled"] == "1" && !servesAll(ctx, client) {
		found.fail(checkCluster, forStore, "Redis %s is one node of a cluster, so it has only some of the locks, and a URL cannot name the others: what doctor finds holds for this node. Functions need redis.NewClusterClient", address)
	}
	if replicas := info["connected_slaves"]; info["role"] == "slave" {
		found.fail(checkReplicas, forStore, "Redis %s is a replica, which takes no locks: name its primary", address)
	} else if replicas != "" && replicas != "0" {
		found.warn(checkReplicas, forStore, "Redis %s has %s replicas, and a failover may lose its last writes, and with them a lock: check the fence where that matters", address, replicas)
	}
	return found
}

// servesAll reports whether the server is the only primary of its cluster, such
// as that of a single shard.
// https://redis.io/docs/latest/commands/cluster-info/
func servesAll(ctx context.Context, client InfoClient) bool {
	text, err := client.ClusterInfo(ctx).Result()
	return err == nil && parseInfo(text)["cluster_size"] == "1"
}

// parseInfo reads the answer of INFO.
// https://redis.io/docs/latest/commands/info/
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}
