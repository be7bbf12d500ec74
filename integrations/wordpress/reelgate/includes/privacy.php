<?php
namespace Reelgate;

defined( 'ABSPATH' ) || exit;

function add_eraser( $erasers ) {
	$erasers['reelgate'] = array(
		'eraser_friendly_name' => __( 'Reelgate: what was watched', 'reelgate' ),
		'callback'             => __NAMESPACE__ . '\\erase_viewer',
	);
	return $erasers;
}

/** Erases what the server keeps of a user: what they watched, their name, their e-mail address. */
function erase_viewer( $email ) {
	$user   = get_user_by( 'email', $email );
	$result = array( 'items_removed' => false, 'items_retained' => false, 'messages' => array(), 'done' => true );
	if ( ! $user ) {
		return $result;
	}
	$reply = call_api( 'DELETE', '/viewers/' . viewer_id( $user->ID ) );
	if ( is_wp_error( $reply ) ) {
		$result['items_retained'] = true;
		$result['messages'][]     = 'Reelgate: ' . $reply->get_error_message();
		return $result;
	}
	foreach ( array_keys( get_user_meta( $user->ID ) ) as $key ) {
		if ( 0 === strpos( $key, 'reelgate_completed_' ) ) {
			delete_user_meta( $user->ID, $key );
		}
	}
	$result['items_removed'] = $reply['videos'] > 0;
	return $result;
}
