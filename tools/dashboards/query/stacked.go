package query

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// stacked says whether the series of a graph are drawn on top of each other.
func stacked(custom any) bool {
	var c *timeseries.FieldConfig
	switch v := custom.(type) {
	case timeseries.FieldConfig:
		c = &v
	case *timeseries.FieldConfig:
		c = v
	}
	return c != nil && c.Stacking != nil && c.Stacking.Mode != nil && *c.Stacking.Mode == common.StackingModeNormal
}
