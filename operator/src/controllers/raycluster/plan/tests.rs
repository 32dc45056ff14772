mod deletion;
mod groups;
mod head;
mod multi_host;
mod whole;
