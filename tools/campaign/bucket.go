package main

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// bucketEnv lets a runner write to a bucket.
var bucketEnv = []string{"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true"}

// A bucketFault stands before a bucket in a run that holds its streams for so long. nil: it refuses connections.
type bucketFault func(bucket http.Handler, hold time.Duration) http.Handler

// inBucket makes runners leave their shards in a bucket with a fault.
func inBucket(fault bucketFault) prepare {
	return func(_ *rand.Rand, sc *scenario) { sc.bucket, sc.want = fault, invalid() }
}

// startBucket is an S3 server in this process.
func startBucket(fault bucketFault, hold time.Duration) (url string, stop func(), err error) {
	memory := s3mem.New()
	if err := memory.CreateBucket("soaks"); err != nil {
		return "", nil, err
	}
	answers := fault(gofakes3.New(memory).Server(), hold)
	server := httptest.NewServer(answers)
	if answers == nil {
		server.Close()
	}
	return "s3://soaks/all?region=us-east-1&use_path_style=true&endpoint=" + server.URL, server.Close, nil
}

func goodBucket(bucket http.Handler, _ time.Duration) http.Handler { return bucket }

func bucketGone(http.Handler, time.Duration) http.Handler { return nil }

func bucketMissing(bucket http.Handler, _ time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.Replace(r.URL.Path, "soaks", "none", 1)
		bucket.ServeHTTP(w, r)
	})
}

// bucketDenies takes what the runners write at the beginning, and nothing later.
func bucketDenies(bucket http.Handler, hold time.Duration) http.Handler {
	var once sync.Once
	var began time.Time
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { began = time.Now() })
		if r.Method == http.MethodPut && time.Since(began) > hold/2 {
			http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
			return
		}
		bucket.ServeHTTP(w, r)
	})
}

// reads reports whether a request reads a shard.
func reads(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, ".json.gz")
}

func bucketLoses(bucket http.Handler, _ time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reads(r) {
			http.Error(w, "<Error><Code>NoSuchKey</Code></Error>", http.StatusNotFound)
			return
		}
		bucket.ServeHTTP(w, r)
	})
}

// bucketSpoils answers with shards that are not as they were stored.
func bucketSpoils(spoil func([]byte) []byte) bucketFault {
	return func(bucket http.Handler, _ time.Duration) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !reads(r) {
				bucket.ServeHTTP(w, r)
				return
			}
			stored := httptest.NewRecorder()
			r.Header.Del("Range")
			bucket.ServeHTTP(stored, r)
			maps.Copy(w.Header(), stored.Header())
			w.Header().Del("Content-Length")
			w.Header().Del("Etag")
			w.WriteHeader(stored.Code)
			_, _ = w.Write(spoil(stored.Body.Bytes()))
		})
	}
}
