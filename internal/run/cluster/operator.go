package cluster

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// TestedOperator is the version of the k6-operator that soaks were tested with. The objects that the operator
	// creates for a TestRun (Jobs, their names, the starter) are not a stable interface.
	TestedOperator = "v1.6.0"
	// operatorNamespace is the namespace in the operator's bundle, and the default of its Helm chart.
	operatorNamespace = "k6-operator-system"
)

// operatorImage matches the image in the bundle and the chart, from any registry: …/k6-operator:controller-v1.6.0.
var operatorImage = regexp.MustCompile(`(?:^|/)k6-operator:(?:controller-)?(v?(\d+)\.(\d+)[^@]*)`)

// Operator returns the version of the installed k6-operator. The warning is a sentence if no pod of the operator runs,
// or if its release is not the tested one. Patches of that release count as tested.
func (c *Client) Operator(ctx context.Context) (version, warning string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := c.AppsV1().Deployments(operatorNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", "", fmt.Errorf("read the version of the k6-operator: %w", err)
	}
	for _, d := range list.Items {
		for _, container := range d.Spec.Template.Spec.Containers {
			if match := operatorImage.FindStringSubmatch(container.Image); match != nil {
				if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 || d.Status.UnavailableReplicas > 0 && d.Status.AvailableReplicas == 0 {
					return match[1], "the k6-operator " + match[1] + " has no running pod; see kubectl get pods -n " + operatorNamespace, nil
				}
				return match[1], operatorWarning(match), nil
			}
		}
	}
	return "", "", errors.New("read the version of the k6-operator: no Deployment in " + operatorNamespace + " has a k6-operator image with a version")
}

// operatorWarning returns a sentence about an untested version; "" for a tested one. match is a match of operatorImage.
func operatorWarning(match []string) string {
	tested := operatorImage.FindStringSubmatch("k6-operator:" + TestedOperator)
	for _, i := range []int{2, 3} { // major, minor
		have, _ := strconv.Atoi(match[i])
		want, _ := strconv.Atoi(tested[i])
		switch {
		case have < want:
			return fmt.Sprintf("the k6-operator is %s, older than the tested %s: it may not support all fields of the TestRun; install %[2]s with "+
				"kubectl apply --server-side -f https://raw.githubusercontent.com/grafana/k6-operator/%[2]s/bundle.yaml", match[1], TestedOperator)
		case have > want:
			return fmt.Sprintf("the k6-operator is %s, newer than the tested %s: it may have phases that soak does not recognize; test it with make e2e-k8s", match[1], TestedOperator)
		}
	}
	return ""
}
