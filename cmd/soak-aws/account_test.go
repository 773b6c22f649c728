package main

import (
	"fmt"
	"net/http"
	"strings"
)

// A fakeAccount answers what `soak-aws check` asks of an account.
type fakeAccount struct {
	zones   map[string][]string // that offer a type
	quota   float64             // of vCPU
	running string              // hosts of others, as EC2 lists them
	dryRun  string              // the code that a dry run ends with
	budgets string              // the code that budgets are refused with
}

// newAccount is one on which nothing stands in the way.
func newAccount() *fakeAccount {
	return &fakeAccount{zones: map[string][]string{"c5.large": {"us-east-1b", "us-east-1a"}}, quota: 5, dryRun: "DryRunOperation"}
}

func (a *fakeAccount) serve(w http.ResponseWriter, r *http.Request, target string) bool {
	refuse := func(code string) {
		w.WriteHeader(http.StatusPreconditionFailed)
		fmt.Fprintf(w, `<Response><Errors><Error><Code>%s</Code><Message>said AWS</Message></Error></Errors></Response>`, code)
	}
	switch q := r.URL.Query(); {
	case q.Get("Action") == "GetCallerIdentity":
		fmt.Fprint(w, `<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:sts::123456789012:assumed-role/dev/me</Arn><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`)
	case q.Get("Action") == "DescribeInstanceTypeOfferings":
		fmt.Fprint(w, `<R><instanceTypeOfferingSet>`)
		for _, zone := range a.zones[q.Get("Filter.1.Value.1")] {
			fmt.Fprintf(w, `<item><location>%s</location></item>`, zone)
		}
		fmt.Fprint(w, `</instanceTypeOfferingSet></R>`)
	case q.Get("Action") == "DescribeInstanceTypes":
		fmt.Fprint(w, `<R><instanceTypeSet><item><vCpuInfo><defaultVCpus>2</defaultVCpus></vCpuInfo></item></instanceTypeSet></R>`)
	case q.Get("Action") == "DescribeInstances" && q.Get("Filter.2.Name") == "" && a.running != "":
		fmt.Fprintf(w, `<R><reservationSet><item><instancesSet>%s</instancesSet></item></reservationSet></R>`, a.running)
	case q.Get("Action") == "RunInstances" && q.Get("DryRun") == "true" && q.Get("ImageId") == "ami-1":
		refuse(a.dryRun)
	case target == "ServiceQuotasV20190624.GetServiceQuota":
		fmt.Fprintf(w, `{"Quota":{"QuotaCode":"L-1216C47A","Value":%.1f}}`, a.quota)
	case strings.HasPrefix(target, "AWSBudgetServiceGateway."):
		if a.budgets != "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"__type":%q,"Message":"said AWS"}`, a.budgets)
			return true
		}
		fmt.Fprint(w, `{"Budgets":[]}`)
	default:
		return false
	}
	return true
}
