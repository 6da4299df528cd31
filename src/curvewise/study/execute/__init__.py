"""Make the runs of a study: in processes of this machine, on a Ray cluster, or shard by shard."""
