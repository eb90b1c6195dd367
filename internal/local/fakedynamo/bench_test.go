package fakedynamo

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// lockRequest is an UpdateItem like the one that acquires a lock.
const lockRequest = `{"TableName":"locks","Key":{"id":{"S":"%d"}},
"UpdateExpression":"SET #token = :token, #exp = :exp, #fence = if_not_exists(#fence, :now) + :one, #holder = :holder, #ttl = :ttl",
"ConditionExpression":"(attribute_not_exists(#token) AND (attribute_not_exists(#rel) OR #rel < :now)) OR #exp < :now OR #token = :token",
"ExpressionAttributeNames":{"#token":"token","#exp":"exp","#fence":"fence","#holder":"holder","#ttl":"ttl","#rel":"rel"},
"ExpressionAttributeValues":{":token":{"S":"0123456789abcdef0123456789abcdef"},":exp":{"N":"1700000030000"},":now":{"N":"1700000000000"},":one":{"N":"1"},":holder":{"S":"function/stream/request"},":ttl":{"N":"1700086400"}},
"ReturnValues":"ALL_NEW","ReturnValuesOnConditionCheckFailure":"ALL_OLD"}`

// BenchmarkHTTP measures acquisitions over loopback, client included.
func BenchmarkHTTP(b *testing.B) {
	endpoint := httptest.NewServer(newServer(b))
	defer endpoint.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var worker atomic.Int64
	b.SetParallelism(8)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		body := fmt.Sprintf(lockRequest, worker.Add(1))
		for pb.Next() {
			r, _ := http.NewRequest(http.MethodPost, endpoint.URL, strings.NewReader(body))
			r.Header.Set("X-Amz-Target", "DynamoDB_20120810.UpdateItem")
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 …")
			res, err := client.Do(r)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode != http.StatusOK {
				b.Error(res.Status)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

// BenchmarkHandler measures the same without the network.
func BenchmarkHandler(b *testing.B) {
	s := newServer(b)
	body := fmt.Sprintf(lockRequest, 1)
	header := http.Header{"X-Amz-Target": {"DynamoDB_20120810.UpdateItem"}, "Authorization": {"AWS4-HMAC-SHA256 …"}}
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, &http.Request{Method: http.MethodPost, Header: header, Body: io.NopCloser(strings.NewReader(body))})
		if w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}
